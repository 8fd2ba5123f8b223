//! The client: writes frames as far as the window allows, until its time or bytes are used up, then waits for
//! the server's count.
//!
//! One loop serves the conversations of a thread in turn: receive, feed the state machine, top up, flush,
//! send.

use super::output::{KcpSendQueue, Output};
use super::poller::Poller;
use super::{KcpConfig, widen_buffers};
use crate::clock;
use crate::packets::{self, Inbox};
use crate::process::{Stop, together};
use crate::refusal::{Doing, Refusal};
use kcp::Kcp;
use linerate_contract::{Bytes, Done, ErrorKind, Errors, Nanos, Spec};
use linerate_proto::frames::{FrameContent, prefix};
use nix::errno::Errno;
use ring::rand::{SecureRandom, SystemRandom};
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// After a signal, the server's count is waited for no longer than this: the user wants the end.
const AFTER_SIGNAL: Nanos = Nanos(1_000_000_000);

/// Runs `spec` to its end.
///
/// # Errors
/// An invalid spec, or a refused system call.
pub(crate) fn run(spec: &Spec) -> Result<Done, Refusal> {
    let config = KcpConfig::of(spec)?;
    if spec.bytes.is_none() && spec.duration_ns.is_none() {
        return Err(Refusal::BadSpec("a stream over KCP needs \"bytes\" or \"duration_ns\"".into()));
    }
    if spec.connections == 0 || spec.threads == 0 || spec.timeout_ns == Nanos::ZERO {
        let text = "\"connections\", \"threads\" and \"timeout_ns\" must be above 0";
        return Err(Refusal::BadSpec(text.into()));
    }
    let stop = Stop::on_signal()?;
    let threads = spec.threads.min(spec.connections);
    let mut errors = Errors::default();
    let mut sockets: Vec<Vec<OwnedFd>> = (0..threads).map(|_| Vec::new()).collect();
    for index in 0..spec.connections {
        match packets::connect(spec, config.mode)? {
            Ok(socket) => {
                widen_buffers(&socket, spec)?;
                sockets[(index % threads) as usize].push(socket);
            }
            Err(kind) => errors.add(kind, 1),
        }
    }
    let start = clock::now();
    let work = |sockets: Vec<OwnedFd>| {
        let stop = stop.clone();
        move || KcpWorker::new(spec, config, sockets, start).map(|worker| worker.run(&stop))
    };
    let (mut good, mut cpu, mut end) = (0, Nanos::ZERO, start);
    for result in together(sockets.into_iter().map(work).collect())? {
        let result = result?;
        good += result.good;
        cpu += result.cpu;
        end = end.max(result.end);
        errors.merge(&result.errors);
    }
    // Where a conversation has failed, the others may end before the time is over.
    if let Some(time) = spec.duration_ns.filter(|_| errors.total() > 0) {
        end = end.max(start + time);
    }
    Ok(Done {
        operations: good.div_ceil(spec.size),
        bytes: Bytes(good),
        start_ns: start,
        end_ns: end,
        errors,
        cpu_ns: cpu,
        verified: good,
        ..Done::default()
    })
}

#[derive(Debug, Default)]
struct WorkerResult {
    good: u64,
    end: Nanos,
    cpu: Nanos,
    errors: Errors,
}

/// One conversation.
struct Conversation {
    socket: OwnedFd,
    queue: Rc<RefCell<KcpSendQueue>>,
    kcp: Kcp<Output>,
    /// No more is written while this many segments wait: those in flight, and as many again that follow at
    /// once.
    max_waiting: usize,
    /// Bytes of content: written, and to be written in total.
    written: u64,
    total: u64,
    ended: bool,
    answer: Vec<u8>,
    /// When the server last acknowledged or sent data.
    progress: Nanos,
    /// The server has answered.
    is_known: bool,
    /// When the server's count must be there, from the end of writing on.
    deadline: Nanos,
    next_flush: Nanos,
    over: bool,
}

struct KcpWorker {
    config: KcpConfig,
    content: FrameContent,
    conversations: Vec<Conversation>,
    poller: Poller,
    inbox: Inbox,
    received: Box<[u8]>,
    start: Nanos,
    end: Nanos,
    timeout: Nanos,
    result: WorkerResult,
}

impl KcpWorker {
    fn new(spec: &Spec, config: KcpConfig, sockets: Vec<OwnedFd>, start: Nanos) -> Result<Self, Refusal> {
        let poller = Poller::of(spec, &sockets)?;
        let (mut conversations, mut in_flight) = (Vec::new(), config.window);
        for socket in sockets {
            let queue = Rc::<RefCell<KcpSendQueue>>::default();
            let output = Output { queue: queue.clone(), to: None };
            in_flight = config.in_flight(&socket)?;
            conversations.push(Conversation {
                kcp: config.conversation(random_conv()?, output, in_flight)?,
                max_waiting: 2 * usize::from(in_flight),
                socket,
                queue,
                written: 0,
                total: spec.bytes.unwrap_or(u64::MAX),
                ended: false,
                answer: Vec::new(),
                progress: start,
                is_known: false,
                deadline: Nanos(u64::MAX),
                next_flush: start,
                over: false,
            });
        }
        Ok(Self {
            content: FrameContent::new(config.size),
            conversations,
            poller,
            inbox: config.inbox(in_flight),
            received: vec![0; config.mtu].into(),
            start,
            end: spec.duration_ns.map_or(Nanos(u64::MAX), |time| start + time),
            timeout: spec.timeout_ns,
            result: WorkerResult::default(),
            config,
        })
    }

    fn run(mut self, stop: &Stop) -> WorkerResult {
        let cpu = clock::thread_cpu();
        crate::waiter::without_timer_slack();
        while self.conversations.iter().any(|flow| !flow.over) {
            let now = clock::now();
            let patience = if stop.is_asked() { self.timeout.min(AFTER_SIGNAL) } else { self.timeout };
            if now >= self.end || stop.is_asked() {
                for flow in &mut self.conversations {
                    flow.total = flow.total.min(flow.written);
                    flow.deadline = flow.deadline.min(now + patience);
                }
                self.end = Nanos(u64::MAX);
            }
            for index in 0..self.conversations.len() {
                self.turn(index, now);
            }
            self.wait();
        }
        self.result.cpu = clock::thread_cpu().since(cpu);
        self.result
    }

    fn turn(&mut self, index: usize, now: Nanos) {
        let flow = &mut self.conversations[index];
        if flow.over {
            return;
        }
        let (mut fed, waiting) = (false, flow.kcp.wait_snd());
        let outcome = match self.inbox.receive(&flow.socket, false) {
            Ok(_) => {
                let mtu = self.config.mtu;
                self.inbox.each(|_, bytes| fed |= bytes.len() <= mtu && flow.kcp.input(bytes).is_ok());
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
            flow.answer.extend_from_slice(&self.received[..length]);
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
            flow.deadline = flow.deadline.min(now + self.timeout);
        }
        let is_late = now.since(flow.progress) >= self.timeout || now >= flow.deadline;
        let count = flow.answer.first_chunk::<8>().map(|count| u64::from_le_bytes(*count));
        let kind = match outcome {
            Err(_) if !flow.is_known => Some(ErrorKind::ConnectRefused),
            Err(_) => Some(ErrorKind::Reset),
            // A count before the server has received the end of the stream counts something else; and so does
            // anything before the count, or more than was sent.
            Ok(()) if !flow.answer.is_empty() && !flow.is_received() => Some(ErrorKind::Malformed),
            Ok(()) if count.is_some_and(|good| good > flow.written) => Some(ErrorKind::Malformed),
            Ok(()) if count.is_some() => None,
            Ok(()) if is_late && flow.is_known => Some(ErrorKind::Timeout),
            Ok(()) if is_late => Some(ErrorKind::ConnectTimeout),
            Ok(()) => None,
        };
        if let Some(kind) = kind {
            self.result.errors.add(kind, 1);
            (self.result.end, flow.over) = (clock::now(), true);
            self.poller.remove(&flow.socket);
        } else if let Some(good) = count {
            self.result.good += good;
            let missing = flow.written - good;
            self.result.errors.add(ErrorKind::WrongContent, missing.div_ceil(self.config.size as u64));
            (self.result.end, flow.over) = (clock::now(), true);
            self.poller.remove(&flow.socket);
            // Acknowledges the answer.
            let _ = flow.flush(now.since(self.start), &self.config);
        }
    }

    /// Waits for input on any socket, or until a flush is due.
    fn wait(&mut self) {
        let due = self.conversations.iter().filter(|flow| !flow.over).map(|flow| flow.next_flush).min();
        let Some(due) = due else { return };
        self.poller.until(clock::now(), due.min(self.end));
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
