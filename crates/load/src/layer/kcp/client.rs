//! The client: writes frames as far as the window lets it, until time or bytes are over, and waits for the server's count.
//!
//! Flows of a thread are served in turn by one loop: take what came, feed the machines, top up, flush, send.

use super::Setting;
use super::frames::{Content, prefix};
use super::outlet::{Outbox, Outlet};
use super::watch::Watch;
use crate::clock;
use crate::packets::{self, Inbox};
use crate::process::Stop;
use crate::refusal::{Doing, Refusal};
use kcp::Kcp;
use linerate_contract::{Bytes, Done, ErrorKind, Errors, Nanos, Spec};
use nix::errno::Errno;
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Runs `spec` to its end.
///
/// # Errors
/// A spec that lacks something, or a kernel that refuses.
pub fn run(spec: &Spec) -> Result<Done, Refusal> {
    let setting = Setting::of(spec)?;
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
        match packets::connect(spec, setting.packets)? {
            Ok(socket) => sockets[(index % threads) as usize].push(socket),
            Err(kind) => errors.add(kind, 1),
        }
    }
    let start = clock::now();
    let tallies: Vec<Result<Tally, Refusal>> = std::thread::scope(|scope| {
        let work = |sockets: Vec<OwnedFd>| {
            let stop = stop.clone();
            scope.spawn(move || Pump::new(spec, setting, sockets, start).map(|pump| pump.run(&stop)))
        };
        let threads: Vec<_> = sockets.into_iter().map(work).collect();
        threads.into_iter().map(|t| t.join().expect("a panic aborts the process")).collect()
    });
    let (mut good, mut cpu, mut end) = (0, Nanos::ZERO, start);
    for tally in tallies {
        let tally = tally?;
        good += tally.good;
        cpu += tally.cpu;
        end = end.max(tally.end);
        errors.merge(&tally.errors);
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
struct Tally {
    good: u64,
    end: Nanos,
    cpu: Nanos,
    errors: Errors,
}

/// One conversation.
struct Flow {
    socket: OwnedFd,
    outbox: Rc<RefCell<Outbox>>,
    kcp: Kcp<Outlet>,
    /// Segments that wait at most before another write: in flight, and as many that follow at once.
    waiting: usize,
    /// Content that is written, and how much there is to write.
    written: u64,
    total: u64,
    ended: bool,
    answer: Vec<u8>,
    /// When the peer was last heard of.
    heard: Nanos,
    is_known: bool,
    next_flush: Nanos,
    over: bool,
}

struct Pump {
    setting: Setting,
    content: Content,
    flows: Vec<Flow>,
    watch: Watch,
    inbox: Inbox,
    received: Box<[u8]>,
    start: Nanos,
    end: Nanos,
    timeout: Nanos,
    tally: Tally,
}

impl Pump {
    fn new(spec: &Spec, setting: Setting, sockets: Vec<OwnedFd>, start: Nanos) -> Result<Self, Refusal> {
        let watch = Watch::of(spec, &sockets)?;
        let (mut flows, mut in_flight) = (Vec::new(), setting.window);
        for socket in sockets {
            let outbox = Rc::<RefCell<Outbox>>::default();
            let outlet = Outlet { outbox: outbox.clone(), to: None };
            in_flight = setting.in_flight(&socket)?;
            flows.push(Flow {
                kcp: setting.conversation(random_conv()?, outlet, in_flight)?,
                waiting: 2 * usize::from(in_flight),
                socket,
                outbox,
                written: 0,
                total: spec.bytes.unwrap_or(u64::MAX),
                ended: false,
                answer: Vec::new(),
                heard: start,
                is_known: false,
                next_flush: start,
                over: false,
            });
        }
        Ok(Self {
            content: Content::new(setting.size),
            flows,
            watch,
            inbox: setting.inbox(in_flight),
            received: vec![0; setting.mtu].into(),
            start,
            end: spec.duration_ns.map_or(Nanos(u64::MAX), |time| start + time),
            timeout: spec.timeout_ns,
            tally: Tally::default(),
            setting,
        })
    }

    fn run(mut self, stop: &Stop) -> Tally {
        let cpu = clock::thread_cpu();
        crate::pause::without_timer_slack();
        while self.flows.iter().any(|flow| !flow.over) {
            let now = clock::now();
            if now >= self.end || stop.is_asked() {
                for flow in &mut self.flows {
                    flow.total = flow.total.min(flow.written);
                }
                self.end = Nanos(u64::MAX);
            }
            for index in 0..self.flows.len() {
                self.turn(index, now);
            }
            self.wait();
        }
        self.tally.cpu = clock::thread_cpu().since(cpu);
        self.tally
    }

    fn turn(&mut self, index: usize, now: Nanos) {
        let flow = &mut self.flows[index];
        if flow.over {
            return;
        }
        let mut fed = false;
        let outcome = match self.inbox.receive(&flow.socket, false) {
            Ok(_) => {
                self.inbox.each(|_, bytes| fed |= flow.kcp.input(bytes).is_ok());
                Ok(())
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno),
        };
        if fed {
            (flow.heard, flow.is_known) = (now, true);
        }
        let topped = flow.top_up(self.setting.size, &self.content);
        let outcome = outcome.and_then(|()| {
            if !fed && !topped && now < flow.next_flush {
                return Ok(());
            }
            flow.next_flush = now + self.setting.interval;
            flow.flush(now.since(self.start), &self.setting)
        });
        while let Ok(length) = flow.kcp.recv(&mut self.received) {
            flow.answer.extend_from_slice(&self.received[..length]);
        }
        let kind = match outcome {
            Err(_) if !flow.is_known => Some(ErrorKind::ConnectRefused),
            Err(_) => Some(ErrorKind::Reset),
            Ok(()) if now.since(flow.heard) >= self.timeout && flow.is_known => Some(ErrorKind::Timeout),
            Ok(()) if now.since(flow.heard) >= self.timeout => Some(ErrorKind::ConnectTimeout),
            Ok(()) => None,
        };
        if let Some(kind) = kind {
            self.tally.errors.add(kind, 1);
            (self.tally.end, flow.over) = (clock::now(), true);
            self.watch.forget(&flow.socket);
        } else if let Some(good) = flow.answer.first_chunk::<8>() {
            let good = u64::from_le_bytes(*good);
            self.tally.good += good;
            let missing = flow.written.saturating_sub(good);
            self.tally.errors.add(ErrorKind::WrongContent, missing.div_ceil(self.setting.size as u64));
            (self.tally.end, flow.over) = (clock::now(), true);
            self.watch.forget(&flow.socket);
            // The server learns that its answer has come.
            let _ = flow.flush(now.since(self.start), &self.setting);
        }
    }

    /// Until something comes on any socket, or a flush is due.
    fn wait(&mut self) {
        let due = self.flows.iter().filter(|flow| !flow.over).map(|flow| flow.next_flush).min();
        let Some(due) = due else { return };
        self.watch.until(clock::now(), due.min(self.end));
    }
}

impl Flow {
    /// Keeps as much waiting as the window takes and one write more; true if something was written.
    fn top_up(&mut self, size: usize, content: &Content) -> bool {
        let mut wrote = false;
        while !self.ended && self.kcp.wait_snd() < self.waiting {
            let length = (self.total - self.written).min(size as u64) as usize;
            // In stream mode the machine puts the two together. It refuses only what is too long, and `Setting` has seen to that.
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

    fn flush(&mut self, since_start: Nanos, setting: &Setting) -> nix::Result<()> {
        let millis = (since_start.0 / 1_000_000) as u32;
        // Writing into memory does not fail, and the first update was long ago.
        let _ = self.kcp.update(millis);
        let _ = self.kcp.flush();
        self.outbox.borrow_mut().send(&self.socket, setting.packets)
    }
}

/// Any number but 0, which stands for no conversation.
fn random_conv() -> Result<u32, Refusal> {
    let mut bytes = [0; 4];
    let source = std::fs::File::open("/dev/urandom");
    source
        .and_then(|mut source| std::io::Read::read_exact(&mut source, &mut bytes))
        .map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0)))
        .doing("reading /dev/urandom")?;
    Ok(u32::from_le_bytes(bytes).max(1))
}
