//! A UDP server with injected faults: it drops, duplicates and delays datagrams by a seed, and reports the
//! exact numbers at its end. The engine is right if its own counts by sequence numbers agree (`linerate
//! selftest`).
//!
//! | option | example | effect on that share of the payload datagrams |
//! |---|---|---|
//! | `loss` | `0.03` | dropped |
//! | `duplicate` | `0.01` | delivered twice |
//! | `reorder` | `0.01` | delivered after the next one of their flow |
//!
//! Datagrams that the kernel dropped because the socket's buffer was full are reported as well
//! (`SO_MEMINFO`), so that loss by the machine is not counted as an error. One thread, with a loop of its own
//! in front of the server's receiver.

use linerate_contract::datagram::Datagram;
use linerate_contract::{Datagrams, Done, Event, Spec, clock};
use linerate_load::layer::udp::server::FlowReceiver;
use linerate_load::packets::Inbox;
use linerate_load::process::{Stop, emit};
use linerate_load::random::uniform;
use linerate_load::refusal::{Doing, Refusal};
use linerate_load::tcp_info;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use std::net::SocketAddr;

const OPTIONS: [&str; 3] = ["loss", "duplicate", "reorder"];

/// Whether the spec requests faults.
pub fn is_requested(spec: &Spec) -> bool {
    OPTIONS.iter().any(|option| spec.options.contains_key(*option))
}

/// Serves until SIGTERM or SIGINT, then reports the injected faults as a `done` event. Of its `datagrams`,
/// `sent` reached the host, `lost` were dropped here, and the difference between `sent` and `received` plus
/// `lost` was dropped by the kernel.
///
/// # Errors
/// Invalid options, or an address that is in use or not of this host.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    let mut path = FaultyPath::from_spec(spec)?;
    let stop = Stop::on_signal()?;
    let (mut receiver, mut inbox, address) = FlowReceiver::open(spec)?;
    emit(&Event::Ready { address });
    path.serve(&mut receiver, &mut inbox, &stop);
    let dropped = tcp_info::drops(receiver.socket()).doing("SO_MEMINFO")?;
    path.injected.sent += dropped;
    emit(&Event::Done(Box::new(Done {
        operations: path.injected.received,
        datagrams: Some(path.injected),
        ..Done::default()
    })));
    Ok(())
}

/// The faults to inject, and the counts of injected ones.
#[derive(Debug)]
pub struct FaultyPath {
    /// A draw below the first drops a datagram, below the second duplicates it, below the third delays it.
    below: [f64; 3],
    random: Pcg64Mcg,
    /// A delayed datagram, until the next one of its flow.
    late: Option<(SocketAddr, Vec<u8>)>,
    injected: Datagrams,
}

impl FaultyPath {
    /// The faults that the options of `spec` request, by its seed.
    ///
    /// # Errors
    /// A share that is none, or shares above 1 together.
    pub fn from_spec(spec: &Spec) -> Result<Self, Refusal> {
        let mut below = [0.0; 3];
        let mut sum = 0.0;
        for (limit, option) in below.iter_mut().zip(OPTIONS) {
            let text = spec.options.get(option).map_or("0", String::as_str);
            let share: Option<f64> = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
            sum += share.ok_or_else(|| {
                Refusal::BadSpec(format!("\"options.{option}\" must be a share, 0 to 1, not {text:?}"))
            })?;
            *limit = sum;
        }
        if sum > 1.0 {
            return Err(Refusal::BadSpec(format!("the shares of {} are more than 1", OPTIONS.join(", "))));
        }
        let random = Pcg64Mcg::seed_from_u64(spec.seed);
        Ok(Self { below, random, late: None, injected: Datagrams::default() })
    }

    fn serve(&mut self, receiver: &mut FlowReceiver, inbox: &mut Inbox, stop: &Stop) {
        while !stop.is_asked() {
            // A timeout, or a client has exited: the socket remains usable.
            if inbox.receive(receiver.socket(), true).is_ok() {
                let now = clock::now();
                inbox.each(|from, bytes| self.pass(from, bytes, |bytes| receiver.take(from, bytes, now)));
            }
        }
    }

    /// Takes a datagram that has arrived, and delivers it as the draw decides.
    pub fn pass(&mut self, from: SocketAddr, bytes: &[u8], mut deliver: impl FnMut(&[u8])) {
        if !matches!(Datagram::parse(bytes), Some(Datagram::Payload { .. })) {
            // The flow begins or ends: deliver its delayed datagram.
            if let Some((_, last)) = self.late.take_if(|(flow, _)| *flow == from) {
                self.injected.received += 1;
                deliver(&last);
            }
            return deliver(bytes);
        }
        self.injected.sent += 1;
        let draw = uniform(&mut self.random);
        let [lost, doubled, delayed] = self.below;
        if draw < lost {
            self.injected.lost += 1;
            return;
        }
        if (doubled..delayed).contains(&draw) && self.late.is_none() {
            self.late = Some((from, bytes.to_vec()));
            return;
        }
        self.injected.received += 1;
        deliver(bytes);
        if draw < doubled {
            self.injected.duplicates += 1;
            deliver(bytes);
        }
        if let Some((_, late)) = self.late.take_if(|(flow, _)| *flow == from) {
            self.injected.received += 1;
            self.injected.reordered += 1;
            deliver(&late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::datagram::Account;
    use linerate_contract::{Layer, Role, Workload};

    const FLOWS: [&str; 2] = ["10.0.0.1:1000", "10.0.0.2:1000"];

    fn path(options: &[(&str, &str)]) -> Result<FaultyPath, Refusal> {
        let mut spec = Spec::new(Role::Server, Layer::Udp, Workload::Stream);
        spec.options = options.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        FaultyPath::from_spec(&spec)
    }

    /// Two flows of `each` datagrams in turn; returns the sum of their counts.
    fn through(path: &mut FaultyPath, each: u64) -> Datagrams {
        let flows = FLOWS.map(|flow| flow.parse::<SocketAddr>().unwrap());
        let mut accounts = [Account::default(), Account::default()];
        for sequence in 0..=each {
            let datagram =
                if sequence < each { Datagram::Payload { sequence } } else { Datagram::End { sent: each } };
            for (flow, account) in flows.iter().zip(&mut accounts) {
                path.pass(*flow, &datagram.to_bytes(), |bytes| {
                    if let Some(Datagram::Payload { sequence }) = Datagram::parse(bytes) {
                        account.good(sequence, bytes.len() as u64, 1);
                    }
                });
            }
        }
        let mut sum = Datagrams::default();
        accounts.iter().for_each(|account| sum += Datagrams::of_flow(each, &account.report()));
        sum
    }

    #[test]
    fn the_counts_by_sequence_number_equal_the_injected_faults() {
        for seed in 0..20_u32 {
            let mut path = path(&[("loss", "0.1"), ("duplicate", "0.1"), ("reorder", "0.2")]).unwrap();
            path.random = Pcg64Mcg::seed_from_u64(seed.into());
            let found = through(&mut path, 1_000);
            assert_eq!(found, path.injected, "seed {seed}");
            assert!((150..250).contains(&found.lost), "{found:?}");
            assert!(found.duplicates > 150 && found.reordered > 150, "{found:?}");
        }
    }

    #[test]
    fn without_faults_all_is_delivered_and_with_full_loss_nothing() {
        let whole = Datagrams { sent: 20, received: 20, ..Datagrams::default() };
        assert_eq!(through(&mut path(&[]).unwrap(), 10), whole);
        let none = Datagrams { sent: 20, lost: 20, ..Datagrams::default() };
        assert_eq!(through(&mut path(&[("loss", "1")]).unwrap(), 10), none);
        // While one is delayed, no other is.
        let swapped = through(&mut path(&[("reorder", "1")]).unwrap(), 10);
        assert_eq!((swapped.received, swapped.lost), (20, 0));
        assert!(swapped.reordered >= 5, "{swapped:?}");
    }

    #[test]
    fn invalid_shares_are_refused() {
        for options in [
            &[("loss", "2")][..],
            &[("reorder", "x")],
            &[("duplicate", "-1")],
            &[("loss", "0.6"), ("reorder", "0.6")],
        ] {
            assert_eq!(path(options).unwrap_err().exit_status(), 2, "{options:?}");
        }
    }
}
