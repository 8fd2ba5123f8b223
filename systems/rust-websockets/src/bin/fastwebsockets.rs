//! fastwebsockets as in its documentation: hyper for the upgrade; frames are read, written, and flushed,
//! since TLS buffers. The FragmentCollector of its examples cannot flush, so fragments are handled here.

use bytes::Bytes;
use fastwebsockets::{Frame, OpCode, Payload, WebSocket, WebSocketError, handshake, upgrade};
use http_body_util::Empty;
use hyper::header::{CONNECTION, HOST, UPGRADE};
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper::{Request, body::Incoming, server::conn::http1};
use hyper_util::rt::TokioIo;
use linerate_contract::ErrorKind;
use rust_websockets::{Below, LONGEST_MESSAGE, Library, Socket, kind_of};
use std::cell::Cell;
use std::marker::PhantomData;

fn main() {
    rust_websockets::main::<FastWebSockets>();
}

struct FastWebSockets;

impl Library for FastWebSockets {
    const NAME: &'static str = "fastwebsockets";
    const VERSION: &'static str = env!("FASTWEBSOCKETS_VERSION");
    type Socket<S: Below> = Frames<S>;

    async fn connect<S: Below>(below: S, host: String) -> Result<Frames<S>, ErrorKind> {
        let request = Request::get("/")
            .header(HOST, host)
            .header(UPGRADE, "websocket")
            .header(CONNECTION, "upgrade")
            .header("Sec-WebSocket-Key", handshake::generate_key())
            .header("Sec-WebSocket-Version", "13")
            .body(Empty::<Bytes>::new())
            .map_err(|_| ErrorKind::Failed)?;
        let (socket, _) = handshake::client(&Spawn, request, below).await.map_err(|error| match error {
            WebSocketError::InvalidStatusCode(_) => ErrorKind::WrongStatus,
            other => kind(&other),
        })?;
        Ok(Frames::new(socket))
    }

    async fn accept<S: Below>(below: S, serve: impl AsyncFnOnce(Frames<S>) + 'static) {
        // One upgrade per connection: after it the connection is not HTTP any more.
        let serve = Cell::new(Some(serve));
        let answer = async |mut request: Request<Incoming>| {
            let (response, upgraded) = upgrade::upgrade(&mut request)?;
            if let Some(serve) = serve.take() {
                tokio::task::spawn_local(async move {
                    if let Ok(socket) = upgraded.await {
                        serve(Frames::new(socket)).await;
                    }
                });
            }
            Ok::<_, WebSocketError>(response)
        };
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(below), service_fn(answer)).with_upgrades();
        // A peer that violates the protocol ends its own connection.
        let _ = connection.await;
    }
}

/// The executor of hyper's part of the handshake.
struct Spawn;

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for Spawn {
    fn execute(&self, future: F) {
        tokio::task::spawn(future);
    }
}

struct Frames<S> {
    frames: WebSocket<TokioIo<Upgraded>>,
    below: PhantomData<S>,
}

impl<S> Frames<S> {
    fn new(mut socket: WebSocket<TokioIo<Upgraded>>) -> Self {
        socket.set_max_message_size(LONGEST_MESSAGE);
        Self { frames: socket, below: PhantomData }
    }

    async fn write(&mut self, frame: Frame<'_>) -> Result<(), WebSocketError> {
        self.frames.write_frame(frame).await?;
        self.frames.flush().await
    }
}

impl<S: Below> Socket for Frames<S> {
    async fn send(&mut self, message: Bytes) -> Result<(), ErrorKind> {
        self.write(Frame::binary(Payload::Borrowed(&message))).await.map_err(|error| kind(&error))
    }

    async fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<(), ErrorKind> {
        loop {
            let frame = self.frames.read_frame().await.map_err(|error| kind(&error))?;
            match frame.opcode {
                OpCode::Binary | OpCode::Continuation => {
                    take(&frame.payload);
                    if frame.fin {
                        return Ok(());
                    }
                }
                OpCode::Close => return Err(ErrorKind::EmptyResponse),
                _ => {}
            }
        }
    }

    async fn echo(&mut self) {
        while let Ok(frame) = self.frames.read_frame().await {
            let outcome = match frame.opcode {
                OpCode::Close => return,
                // A frame keeps the key that its payload was masked with; a server sends none (RFC 6455
                // section 5.1).
                OpCode::Binary | OpCode::Continuation => {
                    self.write(Frame::new(frame.fin, frame.opcode, None, frame.payload)).await
                }
                _ => Ok(()),
            };
            if outcome.is_err() {
                return;
            }
        }
    }

    async fn close(&mut self) {
        if self.write(Frame::close(1000, b"")).await.is_ok() {
            while self.frames.read_frame().await.is_ok_and(|frame| frame.opcode != OpCode::Close) {}
        }
    }
}

fn kind(error: &WebSocketError) -> ErrorKind {
    match error {
        WebSocketError::IoError(error) => kind_of(error),
        WebSocketError::ConnectionClosed | WebSocketError::UnexpectedEOF => ErrorKind::EmptyResponse,
        WebSocketError::HTTPError(_) => ErrorKind::Failed,
        _ => ErrorKind::Malformed,
    }
}
