//! The server: a task for each connection, which echoes, or answers transfers of a stream.

use crate::{Content, Library, Number, Socket, number, tls};
use bytes::Bytes;
use linerate_contract::program::{Refusal, emit};
use linerate_contract::{ErrorKind, Event, Spec};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_local;

const BACKLOG: u32 = 511;

pub(crate) async fn run<L: Library>(spec: Spec) -> Result<(), Refusal> {
    let listen = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let acceptor = match (&spec.tls, spec.layer.as_str()) {
        (Some(keys), "wss") => Some(tls::acceptor(keys).map_err(Refusal::BadSpec)?),
        (None, "wss") => return Err(Refusal::BadSpec("a server of wss needs \"tls\"".into())),
        _ => None,
    };
    let socket = if listen.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(listen)?;
    let listener = socket.listen(BACKLOG)?;
    emit(&Event::Ready { address: listener.local_addr()? });
    let service = Rc::new(Service::new(&spec));
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        () = accept::<L>(listener, acceptor, service) => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

async fn accept<L: Library>(
    listener: TcpListener,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    service: Rc<Service>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptor for a waiting connection.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (acceptor, service) = (acceptor.clone(), Rc::clone(&service));
        spawn_local(async move {
            let _ = stream.set_nodelay(true);
            match acceptor {
                None => L::accept(stream, async move |mut socket| service.serve(&mut socket).await).await,
                Some(acceptor) => {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    L::accept(stream, async move |mut socket| service.serve(&mut socket).await).await;
                }
            }
        });
    }
}

/// What all connections share.
struct Service {
    is_stream: bool,
    client_writes: bool,
    size: usize,
    content: Content,
}

impl Service {
    fn new(spec: &Spec) -> Self {
        let client_writes =
            spec.options.get("direction").is_some_and(|direction| direction == "client-writes");
        let longest = (spec.size as usize).max(super::PERIOD);
        Self {
            is_stream: spec.workload == "stream",
            client_writes,
            size: spec.size as usize,
            content: Content::new(longest),
        }
    }

    async fn serve(&self, socket: &mut impl Socket) {
        if !self.is_stream {
            return socket.echo().await;
        }
        // Ends with the connection, however that ends.
        while self.transfer(socket).await.is_ok() {}
    }

    async fn transfer(&self, socket: &mut impl Socket) -> Result<(), ErrorKind> {
        let (mut wanted, mut at, mut good) = (Number::default(), 0, 0);
        while wanted.value().is_none_or(|wanted| self.client_writes && at < wanted) {
            socket
                .receive(|bytes| {
                    let content = if wanted.value().is_none() { wanted.take(bytes) } else { bytes };
                    good += self.content.good(at, content);
                    at += content.len() as u64;
                })
                .await?;
        }
        let wanted = wanted.value().unwrap_or_default();
        if self.client_writes {
            return socket.send(number(good)).await;
        }
        for at in (0..wanted).step_by(self.size) {
            let length = (wanted - at).min(self.size as u64) as usize;
            socket.send(Bytes::from_static(self.content.piece(at, length))).await?;
        }
        Ok(())
    }
}
