//! tokio-tungstenite as in its examples: `client_async`, `accept_async`, a stream and sink of messages.

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use linerate_contract::ErrorKind;
use rust_websockets::{Below, LONGEST_MESSAGE, Library, Socket, kind_of};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode};
use tokio_tungstenite::tungstenite::{Error, Message};

fn main() {
    rust_websockets::main::<Tungstenite>();
}

struct Tungstenite;

impl Library for Tungstenite {
    const NAME: &'static str = "tokio-tungstenite";
    const VERSION: &'static str = env!("TOKIO_TUNGSTENITE_VERSION");
    type Socket<S: Below> = Stream<S>;

    async fn connect<S: Below>(below: S, host: String) -> Result<Stream<S>, ErrorKind> {
        let upgraded =
            tokio_tungstenite::client_async_with_config(format!("ws://{host}/"), below, Some(config())).await;
        upgraded.map(|(stream, _)| Stream(stream)).map_err(|error| match error {
            Error::Http(_) => ErrorKind::WrongStatus,
            other => kind(&other),
        })
    }

    async fn accept<S: Below>(below: S, serve: impl AsyncFnOnce(Stream<S>) + 'static) {
        if let Ok(stream) = tokio_tungstenite::accept_async_with_config(below, Some(config())).await {
            serve(Stream(stream)).await;
        }
    }
}

struct Stream<S>(WebSocketStream<S>);

impl<S: Below> Socket for Stream<S> {
    async fn send(&mut self, message: Bytes) -> Result<(), ErrorKind> {
        self.0.send(Message::Binary(message)).await.map_err(|error| kind(&error))
    }

    async fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<(), ErrorKind> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Binary(bytes))) => {
                    take(&bytes);
                    return Ok(());
                }
                // A server answers a close frame by reading on.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(kind(&error)),
                None => return Err(ErrorKind::EmptyResponse),
            }
        }
    }

    async fn echo(&mut self) {
        while let Some(Ok(message)) = self.0.next().await {
            if message.is_binary() && self.0.send(message).await.is_err() {
                return;
            }
        }
    }

    async fn close(&mut self) {
        let normal = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        if self.0.close(Some(normal)).await.is_ok() {
            while let Some(Ok(_)) = self.0.next().await {}
        }
    }
}

/// The library's defaults, except for the limit of messages.
fn config() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(LONGEST_MESSAGE))
}

fn kind(error: &Error) -> ErrorKind {
    match error {
        Error::Io(error) => kind_of(error),
        Error::ConnectionClosed | Error::AlreadyClosed => ErrorKind::EmptyResponse,
        Error::Protocol(_) | Error::Capacity(_) | Error::Utf8(_) => ErrorKind::Malformed,
        _ => ErrorKind::Failed,
    }
}
