//! Progress samples while a client runs.
//!
//! Threads share nothing here either. At each sample a thread exchanges its histogram for an empty one and
//! sends the full one to the collector, a thread of its own, which adds up, prints, and returns the histogram
//! emptied. At the end each thread gets its sum back. Nothing is copied in the event loop: a copy of a
//! quarter of a megabyte would delay the operations that are due meanwhile.

use crate::meter::Meter;
use crate::process::{emit, spawn};
use crate::refusal::Refusal;
use linerate_contract::{Bytes, Event, Nanos, Recorder, Sample};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Operations, bytes and failures of one thread since its window opened.
type Totals = (u64, u64, u64);
/// Bytes of a stream that have moved since then, and the longest round-trip time of its connections in
/// microseconds.
pub type Moved = (u64, Option<u64>);

/// From a thread to the collector.
#[derive(Debug)]
enum Message {
    /// A sample is due: the totals, and the latencies since the sample before.
    Sample { thread: usize, at: Nanos, totals: Totals, rtt: Option<u64>, latency: Recorder },
    /// The window is over: the thread waits for the sum of its latencies.
    End { thread: usize },
}

/// A thread's end.
#[derive(Debug)]
pub struct Sampler {
    thread: usize,
    every: Nanos,
    next: Nanos,
    out: Sender<Message>,
    /// Histograms that come back from the collector, empty; after [`Message::End`] the thread's sum.
    back: Receiver<Recorder>,
    /// Histograms that are with the collector.
    lent: u32,
    spare: Option<Recorder>,
}

/// One sampler per thread, or `None` for each if the spec requests no samples.
///
/// # Errors
/// The limit of threads is reached.
pub fn samplers(every: Option<Nanos>, threads: u32) -> Result<Vec<Option<Sampler>>, Refusal> {
    let Some(every) = every else { return Ok((0..threads).map(|_| None).collect()) };
    let (out, messages) = channel();
    let (returns, backs): (Vec<_>, Vec<_>) = (0..threads).map(|_| channel()).unzip();
    // Not joined: it ends with the last sampler, or with the process.
    spawn(move || collect(&messages, &returns, |sample| emit(&Event::Sample(sample))))?;
    let sampler = |(thread, back)| {
        Some(Sampler {
            thread,
            every,
            next: Nanos::ZERO,
            out: out.clone(),
            back,
            lent: 0,
            spare: Some(Recorder::default()),
        })
    };
    Ok(backs.into_iter().enumerate().map(sampler).collect())
}

impl Sampler {
    /// When the next sample is due.
    #[inline]
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Sends a sample that is due, of a stream with what has `moved`; the first is due one interval after the
    /// window opened.
    #[cold]
    pub fn take(&mut self, now: Nanos, meter: &mut Meter, moved: Option<Moved>) {
        let at = now.since(meter.started());
        if self.next > Nanos::ZERO {
            if let Ok(returned) = self.back.try_recv() {
                self.lent -= 1;
                self.spare = Some(returned);
            }
            // While the collector cannot print, the spare one is not back: the next sample then covers two
            // intervals.
            if let Some(empty) = self.spare.take() {
                let latency = meter.swap_latency(empty);
                let (thread, mut totals, mut rtt) = (self.thread, meter.totals(), None);
                if let Some(moved) = moved {
                    (totals.0, totals.1, rtt) = (0, moved.0, moved.1);
                }
                // Fails only while the process ends.
                let _ = self.out.send(Message::Sample { thread, at, totals, rtt, latency });
                self.lent += 1;
            }
        }
        self.next = meter.started() + Nanos((at.0 / self.every.0 + 1) * self.every.0);
    }

    /// Adds the latencies of all samples to `meter`, after the window.
    pub fn finish(self, meter: &mut Meter) {
        if self.out.send(Message::End { thread: self.thread }).is_err() {
            return;
        }
        // Messages are answered in order: behind the emptied histograms is the sum.
        for _ in 0..=self.lent {
            match self.back.recv() {
                Ok(latency) => meter.add_latency(&latency),
                Err(_) => return,
            }
        }
    }
}

/// Adds up what the threads send, and prints a sample when each has sent one: by then all of them have
/// counted the interval. A thread whose window is over has nothing to add.
fn collect(messages: &Receiver<Message>, returns: &[Sender<Recorder>], mut print: impl FnMut(Sample)) {
    let mut latest: Vec<Totals> = vec![(0, 0, 0); returns.len()];
    let mut sums: Vec<Recorder> = returns.iter().map(|_| Recorder::default()).collect();
    let [mut has_sent, mut has_ended] = [vec![false; returns.len()], vec![false; returns.len()]];
    let (mut before, mut longest, mut at) = ((0, 0, 0), None, Nanos::ZERO);
    while let Ok(message) = messages.recv() {
        match message {
            Message::Sample { thread, at: now, totals, rtt, mut latency } => {
                latest[thread] = totals;
                longest = longest.max(rtt);
                sums[thread].merge(&latency);
                latency.clear();
                // Fails only where the thread is gone; so in the line below.
                let _ = returns[thread].send(latency);
                has_sent[thread] = true;
                at = at.max(now);
            }
            Message::End { thread } => {
                let _ = returns[thread].send(sums[thread].clone());
                has_ended[thread] = true;
            }
        }
        let is_whole = has_sent.iter().zip(&has_ended).all(|(sent, ended)| *sent || *ended);
        if !is_whole || !has_sent.contains(&true) {
            continue;
        }
        has_sent.fill(false);
        let sum = latest.iter().fold((0, 0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2));
        let mut latency = Recorder::default();
        sums.iter().for_each(|one| latency.merge(one));
        print(Sample {
            at_ns: at,
            operations: sum.0 - before.0,
            // Those of a transfer that failed are gone.
            bytes: Bytes(sum.1.saturating_sub(before.1)),
            failed: sum.2 - before.2,
            latency: (latency.counts().total() > 0).then(|| latency.counts()),
            lost: None,
            rtt_us: longest.take(),
        });
        before = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Spec, Workload};

    const EVERY: Nanos = Nanos(1_000);

    fn meter(spec: &Spec) -> Meter {
        let mut meter = Meter::new(spec, Some(100)).unwrap();
        meter.start(Nanos(0));
        meter
    }

    /// Two threads of 30 operations each; a thread takes a sample after each tenth.
    #[test]
    fn samples_exchange_the_histogram_and_the_end_restores_all_of_it() {
        let spec = Spec::new(Role::Client, Layer::Tcp, Workload::Rr);
        let mut samplers = samplers(Some(EVERY), 2).unwrap();
        let mut whole = meter(&spec);
        let mut sum = meter(&spec);
        for sampler in &mut samplers {
            let (mut sampler, mut meter) = (sampler.take().unwrap(), meter(&spec));
            for number in 1..=30 {
                assert!(meter.begin() && whole.begin());
                let now = Nanos(number * 100);
                meter.succeed(Nanos(number), now, 1, true);
                whole.succeed(Nanos(number), now, 1, true);
                // Waits for the collector, so that no sample is left out.
                while number % 10 == 1 && sampler.lent > 0 {
                    sampler.spare = sampler.back.recv().ok();
                    sampler.lent -= 1;
                }
                if now >= sampler.next() {
                    sampler.take(now, &mut meter, None);
                }
                if number % 10 == 0 && number > 0 && sampler.lent == 1 {
                    assert_eq!(meter.latency().counts().total(), 0, "the sample took the histogram");
                }
            }
            sampler.finish(&mut meter);
            assert_eq!(meter.latency().counts().total(), 30);
            sum.merge(&meter);
        }
        assert_eq!(sum.latency().counts(), whole.latency().counts());
    }

    #[test]
    fn a_printed_sample_has_the_latencies_of_all_threads_so_far() {
        let (out, messages) = channel();
        let (returns, backs): (Vec<_>, Vec<_>) = (0..2).map(|_| channel()).unzip();
        for (thread, at) in [(1, 900), (0, 1_000), (0, 1_990), (1, 2_000)] {
            let mut latency = Recorder::default();
            latency.record(5);
            let totals = if at < 1_500 { (1, 10, 0) } else { (2, 20, 1) };
            out.send(Message::Sample { thread, at: Nanos(at), totals, rtt: None, latency }).unwrap();
        }
        out.send(Message::End { thread: 1 }).unwrap();
        drop(out);
        let mut printed = Vec::new();
        collect(&messages, &returns, |sample| printed.push(sample));
        let counts: Vec<_> = printed
            .iter()
            .map(|s| (s.at_ns.0, s.operations, s.failed, s.latency.as_ref().unwrap().total()))
            .collect();
        assert_eq!(counts, [(1_000, 2, 0, 2), (2_000, 2, 2, 4)]);
        let returned: Vec<_> = backs[1].try_iter().map(|recorder| recorder.counts().total()).collect();
        assert_eq!(returned, [0, 0, 2]);
    }
}
