//! The client, as the engine's [`Layer`]: an operation is a conversation. It writes frames as far as the
//! window allows, until its time or bytes are used up, then waits for the server's count.
//!
//! A turn of a conversation: receive, feed the state machine, top up, flush, send.

use super::output::Output;
use super::{KcpConfig, SPIN};
use crate::cause::{note, note_errno};
use crate::clock;
use crate::layer::{Flow, Layer, Progress, Response};
use crate::packets::{self, Inbox, SendQueue, widen_buffers};
use crate::refusal::{Doing, Refusal};
use kcp::Kcp;
use linerate_contract::{Cause, ErrorKind, Nanos, Spec};
use linerate_proto::frames::{FrameContent, prefix};
use nix::errno::Errno;
use ring::rand::{SecureRandom, SystemRandom};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

/// A thread's end of the layer.
pub(crate) struct KcpClient {
    spec: Arc<Spec>,
    config: KcpConfig,
    content: FrameContent,
    /// Set from the first conversation on: the socket's buffer decides how much it holds.
    inbox: Option<Inbox>,
    received: Box<[u8]>,
    start: Nanos,
}

impl Clone for KcpClient {
    fn clone(&self) -> Self {
        let (spec, content) = (self.spec.clone(), self.content.clone());
        Self {
            spec,
            config: self.config,
            content,
            inbox: None,
            received: self.received.clone(),
            start: self.start,
        }
    }
}

/// One conversation.
pub(crate) struct Conversation {
    socket: OwnedFd,
    queue: Rc<RefCell<SendQueue>>,
    kcp: Kcp<Output>,
    /// No more is written while this many segments wait: those in flight, and as many again that follow at
    /// once.
    max_waiting: usize,
    /// Bytes of content: written, and to be written in total.
    written: u64,
    total: u64,
    ended: bool,
    response: Vec<u8>,
    /// When the server last acknowledged or sent data; zero before the first turn.
    progress: Nanos,
    /// The server has answered.
    is_known: bool,
    /// When the server's count must be there, from the end of writing on.
    deadline: Nanos,
    next_flush: Nanos,
}

// SAFETY: both owners of `queue`, this field and the output of `kcp`, are in the conversation, and move with
// it.
#[allow(unsafe_code, reason = "the state machine keeps its output, which shares the queue with this field")]
unsafe impl Send for Conversation {}

impl AsFd for Conversation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl KcpClient {
    fn connect(&mut self) -> Result<Result<Conversation, ErrorKind>, Refusal> {
        let socket = match packets::connect(&self.spec, self.config.mode)? {
            Ok(socket) => socket,
            Err(kind) => return Ok(Err(kind)),
        };
        widen_buffers(&socket, &self.spec)?;
        let in_flight = self.config.in_flight(&socket)?;
        self.inbox.get_or_insert_with(|| self.config.inbox(in_flight));
        let queue = Rc::<RefCell<SendQueue>>::default();
        let output = Output { queue: queue.clone(), to: None };
        Ok(Ok(Conversation {
            kcp: self.config.conversation(random_conv()?, output, in_flight)?,
            max_waiting: 2 * usize::from(in_flight),
            socket,
            queue,
            written: 0,
            total: self.spec.bytes.unwrap_or(u64::MAX),
            ended: false,
            response: Vec::new(),
            progress: Nanos::ZERO,
            is_known: false,
            deadline: Nanos(u64::MAX),
            next_flush: Nanos::ZERO,
        }))
    }
}

impl Layer for KcpClient {
    type Connection = Conversation;
    const TIMED: bool = true;
    const SPIN: Nanos = SPIN;

    fn new(spec: &Spec, _persistent: bool) -> Result<Self, Refusal> {
        let config = KcpConfig::from_spec(spec)?;
        if spec.bytes.is_none() && spec.duration_ns.is_none() {
            return Err(Refusal::BadSpec("a stream over KCP needs \"bytes\" or \"duration_ns\"".into()));
        }
        let mut client = Self {
            spec: Arc::new(spec.clone()),
            config,
            content: FrameContent::new(config.size),
            inbox: None,
            received: vec![0; config.mtu].into(),
            start: clock::now(),
        };
        // What the kernel refuses to one, it refuses to all.
        drop(client.connect()?);
        Ok(client)
    }

    fn open(&mut self) -> Result<Conversation, ErrorKind> {
        self.connect().unwrap_or(Err(ErrorKind::DescriptorExhausted))
    }

    fn send(&mut self, _flow: &mut Conversation) -> Result<Flow, ErrorKind> {
        Ok(Flow::Done)
    }

    fn receive(&mut self, flow: &mut Conversation) -> Result<Progress, ErrorKind> {
        let (now, timeout) = (clock::now(), self.spec.timeout_ns);
        if flow.progress == Nanos::ZERO {
            flow.progress = now;
        }
        let (mut fed, waiting) = (false, flow.kcp.wait_snd());
        let inbox = self.inbox.as_mut().expect("an open conversation has set it");
        let outcome = match inbox.receive(&flow.socket, false) {
            Ok(_) => {
                let mtu = self.config.mtu;
                inbox.each(|_, bytes| fed |= bytes.len() <= mtu && flow.kcp.input(bytes).is_ok());
                Ok(())
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno),
        };
        flow.is_known |= fed;
        // A peer that only sends, and acknowledges nothing, is no progress.
        if flow.kcp.wait_snd() < waiting {
            flow.progress = now;
        }
        while let Ok(length) = flow.kcp.recv(&mut self.received) {
            flow.progress = now;
            flow.response.extend_from_slice(&self.received[..length]);
        }
        let topped = flow.top_up(self.config.size, &self.content);
        let outcome = outcome.and_then(|()| {
            if !fed && !topped && now < flow.next_flush {
                return Ok(());
            }
            flow.next_flush = now + self.config.interval;
            flow.flush(now.since(self.start), &self.config)
        });
        if flow.ended {
            flow.deadline = flow.deadline.min(now + timeout);
        }
        let is_late = now.since(flow.progress) >= timeout || now >= flow.deadline;
        let count = flow.response.first_chunk::<8>().map(|count| u64::from_le_bytes(*count));
        match (outcome, count) {
            (Err(errno), _) => {
                let kind = if flow.is_known { ErrorKind::Reset } else { ErrorKind::ConnectRefused };
                Err(note_errno(kind, "a datagram to the server", errno))
            }
            // A count before the server has received the end of the stream counts something else; and so does
            // anything before the count, or more than was sent.
            _ if !flow.response.is_empty() && !flow.is_received() => {
                let text = "data before the end of the stream, so of no server of linerate's stream";
                Err(note(ErrorKind::Malformed, || Cause::showing(text, &flow.response)))
            }
            (_, Some(good)) if good != flow.written => {
                let more = good > flow.written;
                let kind = if more { ErrorKind::Malformed } else { ErrorKind::WrongContent };
                let text = format!("the server counts {good} good bytes of {}", flow.written);
                Err(note(kind, || Cause::new(text)))
            }
            (_, Some(good)) => {
                // Acknowledges the response.
                let _ = flow.flush(now.since(self.start), &self.config);
                Ok(Progress::Complete(Response { bytes: good, verified: true, reusable: true, status: 0 }))
            }
            _ if is_late && flow.is_known => Err(ErrorKind::Timeout),
            _ if is_late => Err(ErrorKind::ConnectTimeout),
            _ => Ok(Progress::Waiting),
        }
    }

    fn due(&self, flow: &Conversation) -> Nanos {
        flow.next_flush
    }

    fn finish(&mut self, flow: &mut Conversation) {
        flow.total = flow.total.min(flow.written);
        flow.deadline = flow.deadline.min(clock::now() + self.spec.timeout_ns);
    }

    fn moved(&self, flow: &Conversation) -> u64 {
        flow.written
    }
}

impl Conversation {
    /// The server has acknowledged all of the stream, its end included.
    fn is_received(&self) -> bool {
        self.ended && self.kcp.wait_snd() == 0
    }

    /// Writes until [`Self::max_waiting`] segments wait; true if something was written.
    fn top_up(&mut self, size: usize, content: &FrameContent) -> bool {
        let mut wrote = false;
        while !self.ended && self.kcp.wait_snd() < self.max_waiting {
            let length = (self.total - self.written).min(size as u64) as usize;
            // In stream mode KCP joins the two. It refuses only writes that are too long; `KcpConfig`
            // excludes those.
            let frame = self.kcp.send(&prefix(length));
            if frame.and_then(|_| self.kcp.send(content.at(self.written, length))).is_err() {
                return wrote;
            }
            self.written += length as u64;
            self.ended = length == 0;
            wrote = true;
        }
        wrote
    }

    fn flush(&mut self, since_start: Nanos, config: &KcpConfig) -> nix::Result<()> {
        let millis = (since_start.0 / 1_000_000) as u32;
        // Writing into memory does not fail, and the first update was at the start.
        let _ = self.kcp.update(millis);
        let _ = self.kcp.flush();
        self.queue.borrow_mut().send(&self.socket, config.mode)
    }
}

/// A random conversation number; 0 is not a valid one.
fn random_conv() -> Result<u32, Refusal> {
    let mut bytes = [0; 4];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Errno::EIO).doing("reading random numbers of the system")?;
    Ok(u32::from_le_bytes(bytes).max(1))
}
