//! Two labs at the same time: the sides of a pair.

use crate::Lab;
use linerate_contract::Nanos;
use std::thread;
use std::time::Duration;

/// Both labs of a pair.
pub type Pair<'l> = [&'l mut (dyn Lab + 'static); 2];

/// The time slice of processes that run side by side: with the kernel's 3 ms, a side that needs
/// little CPU waits for the slices of the other. Sides that take turns keep the kernel's, since with short
/// slices a relay and a server on one CPU switch more often than alone (docs/decisions/pairs.md).
pub const SLICE: Nanos = Nanos(100_000);

/// The side that starts second waits this long, so that the order is the drawn one.
const HEAD_START: Duration = Duration::from_micros(200);

/// Does the same on both sides at once; `second_first` starts the second side before the first.
pub fn on_both<T: Send>(
    labs: Pair<'_>,
    second_first: bool,
    work: impl Fn(&mut dyn Lab, usize) -> T + Sync,
) -> [T; 2] {
    let [a, b] = labs;
    thread::scope(|scope| {
        let work = &work;
        let delayed = |waits: bool| {
            if waits {
                thread::sleep(HEAD_START);
            }
        };
        let other = scope.spawn(move || {
            delayed(!second_first);
            work(b, 1)
        });
        delayed(second_first);
        let one = work(a, 0);
        [one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))]
    })
}
