//! A UDP server behind a path whose faults are known: it loses, doubles and delays datagrams by a seed, and tells at its end
//! exactly how many. The instrument is right if the account of the sequence numbers agrees (`linerate selftest`).
//!
//! | option | example | what becomes of so large a share of the payload datagrams |
//! |---|---|---|
//! | `loss` | `0.03` | they are treated as if they had never come |
//! | `duplicate` | `0.01` | they come twice |
//! | `reorder` | `0.01` | they come after the next one of their flow |
//!
//! What the kernel dropped for want of room is told, too: it counts at the socket (`SO_MEMINFO`), so that loss by the machine is
//! not taken for an error of the account. One thread, one loop beside the server's, which knows nothing of it.

use super::server::Receiver;
use crate::packets::Inbox;
use crate::process::{Stop, emit};
use crate::random::uniform;
use crate::refusal::{Doing, Refusal};
use crate::{clock, tcp_info};
use linerate_contract::datagram::Datagram;
use linerate_contract::{Datagrams, Done, Event, Spec};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use std::net::SocketAddr;

const OPTIONS: [&str; 3] = ["loss", "duplicate", "reorder"];

/// Whether the path to the server of this spec is to have faults.
#[must_use]
pub fn is_asked_for(spec: &Spec) -> bool {
    OPTIONS.iter().any(|option| spec.options.contains_key(*option))
}

/// Serves until SIGTERM or SIGINT, then tells what was done as a `done` event. Of its `datagrams`, `sent` are those that reached
/// the socket, `lost` those that were dropped here; what is missing between `received` and these two, the kernel dropped.
///
/// # Errors
/// Options that are none, or an address that cannot be had.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    let mut path = Path::of(spec)?;
    let stop = Stop::on_signal()?;
    let (mut receiver, mut inbox, address) = Receiver::open(spec)?;
    emit(&Event::Ready { address });
    path.serve(&mut receiver, &mut inbox, &stop);
    let dropped = tcp_info::drops(receiver.socket()).doing("SO_MEMINFO")?;
    path.did.sent += dropped;
    emit(&Event::Done(Box::new(Done {
        operations: path.did.received,
        datagrams: Some(path.did),
        ..Done::default()
    })));
    Ok(())
}

/// What is done to datagrams, and what was done.
#[derive(Debug)]
struct Path {
    /// Below the first a draw loses a datagram, below the second it doubles it, below the third it delays it.
    below: [f64; 3],
    random: Pcg64Mcg,
    /// Waits for the next one of its flow.
    late: Option<(SocketAddr, Vec<u8>)>,
    did: Datagrams,
}

impl Path {
    fn of(spec: &Spec) -> Result<Self, Refusal> {
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
        Ok(Self { below, random, late: None, did: Datagrams::default() })
    }

    fn serve(&mut self, receiver: &mut Receiver, inbox: &mut Inbox, stop: &Stop) {
        while !stop.is_asked() {
            // Nothing came in time, or a client is gone: the socket goes on.
            if inbox.receive(receiver.socket(), true).is_ok() {
                let now = clock::now();
                inbox.each(|from, bytes| self.pass(from, bytes, |bytes| receiver.take(from, bytes, now)));
            }
        }
    }

    /// Takes a datagram that has arrived, and delivers what comes of it.
    fn pass(&mut self, from: SocketAddr, bytes: &[u8], mut deliver: impl FnMut(&[u8])) {
        if !matches!(Datagram::parse(bytes), Some(Datagram::Payload { .. })) {
            // The flow begins or ends: nothing of it is late any more.
            if let Some((_, last)) = self.late.take_if(|(flow, _)| *flow == from) {
                self.did.received += 1;
                deliver(&last);
            }
            return deliver(bytes);
        }
        self.did.sent += 1;
        let draw = uniform(&mut self.random);
        let [lost, doubled, delayed] = self.below;
        if draw < lost {
            self.did.lost += 1;
            return;
        }
        if (doubled..delayed).contains(&draw) && self.late.is_none() {
            self.late = Some((from, bytes.to_vec()));
            return;
        }
        self.did.received += 1;
        deliver(bytes);
        if draw < doubled {
            self.did.duplicates += 1;
            deliver(bytes);
        }
        if let Some((_, late)) = self.late.take_if(|(flow, _)| *flow == from) {
            self.did.received += 1;
            self.did.reordered += 1;
            deliver(&late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;
    use linerate_contract::datagram::Account;

    const FLOWS: [&str; 2] = ["10.0.0.1:1000", "10.0.0.2:1000"];

    fn path(options: &[(&str, &str)]) -> Result<Path, Refusal> {
        let mut spec = Spec::new(Role::Server, "udp", "stream");
        spec.options = options.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        Path::of(&spec)
    }

    /// Two flows of `each` datagrams in turn, and the sum of their accounts.
    fn through(path: &mut Path, each: u64) -> Datagrams {
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
    fn what_was_done_is_what_an_account_finds() {
        for seed in 0..20_u32 {
            let mut path = path(&[("loss", "0.1"), ("duplicate", "0.1"), ("reorder", "0.2")]).unwrap();
            path.random = Pcg64Mcg::seed_from_u64(seed.into());
            let found = through(&mut path, 1_000);
            assert_eq!(found, path.did, "seed {seed}");
            assert!((150..250).contains(&found.lost), "{found:?}");
            assert!(found.duplicates > 150 && found.reordered > 150, "{found:?}");
        }
    }

    #[test]
    fn a_path_without_faults_changes_nothing_and_one_that_loses_all_delivers_nothing() {
        let whole = Datagrams { sent: 20, received: 20, ..Datagrams::default() };
        assert_eq!(through(&mut path(&[]).unwrap(), 10), whole);
        let none = Datagrams { sent: 20, lost: 20, ..Datagrams::default() };
        assert_eq!(through(&mut path(&[("loss", "1")]).unwrap(), 10), none);
        // While one waits, no other is held back.
        let swapped = through(&mut path(&[("reorder", "1")]).unwrap(), 10);
        assert_eq!((swapped.received, swapped.lost), (20, 0));
        assert!(swapped.reordered >= 5, "{swapped:?}");
    }

    #[test]
    fn shares_that_are_none_are_refused() {
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
