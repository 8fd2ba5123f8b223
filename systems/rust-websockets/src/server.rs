//! The server: one task per connection, which echoes or answers the transfers of a stream.

use crate::{Library, Number, Socket, number, tls};
use bytes::Bytes;
use linerate_contract::program::{Refusal, emit};
use linerate_contract::{Direction, ErrorKind, Event, Spec, Workload};
use linerate_sdk::content::{Content, PERIOD};
use linerate_sdk::missing;
use linerate_sdk::server::{accept, listen};
use std::rc::Rc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_local;

pub(crate) async fn run<L: Library>(spec: Spec) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| missing("listen"))?;
    let acceptor = match (&spec.tls, spec.layer.as_str()) {
        (Some(keys), "wss") => Some(tls::acceptor(keys).map_err(Refusal::BadSpec)?),
        (None, "wss") => return Err(Refusal::BadSpec("a server of wss needs \"tls\"".into())),
        _ => None,
    };
    let service = Rc::new(Service::new(&spec)?);
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = listen(address)?;
    emit(&Event::Ready { address: listener.local_addr()? });
    let handle = |stream| {
        let (acceptor, service) = (acceptor.clone(), Rc::clone(&service));
        spawn_local(async move {
            match acceptor {
                None => L::accept(stream, async move |mut socket| service.serve(&mut socket).await).await,
                Some(acceptor) => {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    L::accept(stream, async move |mut socket| service.serve(&mut socket).await).await;
                }
            }
        });
    };
    tokio::select! {
        () = accept(listener, handle) => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// The state that all connections share.
struct Service {
    is_stream: bool,
    client_writes: bool,
    size: usize,
    content: Content,
}

impl Service {
    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let (is_stream, size) = (spec.workload == Workload::Stream, spec.size as usize);
        let client_writes = is_stream && spec.direction()? == Direction::ClientWrites;
        Ok(Self { is_stream, client_writes, size, content: Content::new(size.max(PERIOD)) })
    }

    async fn serve(&self, socket: &mut impl Socket) {
        if !self.is_stream {
            return socket.echo().await;
        }
        // It ends with the connection.
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
            socket.send(Bytes::from_static(self.content.at(at, length))).await?;
        }
        Ok(())
    }
}
