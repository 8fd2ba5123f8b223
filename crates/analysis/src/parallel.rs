//! Work on all CPUs: the cells of a report are independent of each other.

use std::sync::Mutex;
use std::thread;

/// The results in the order of the items. A thread takes the next item when it is ready for it, since items
/// differ in their work.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(items.iter().enumerate());
    let take = || next.lock().expect(NO_PANIC).next();
    let all_that_come = || std::iter::from_fn(take).map(|(index, item)| (index, work(item))).collect();
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(1, usize::from).min(items.len());
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(all_that_come)).collect();
        let results: Vec<Vec<_>> = threads.into_iter().map(|thread| thread.join().expect(NO_PANIC)).collect();
        results.into_iter().flatten().collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

const NO_PANIC: &str = "the work has no panic";

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1_000).collect();
        assert!(super::map(&items, |item| item * item).into_iter().eq((0..1_000).map(|item| item * item)));
        assert!(super::map(&[] as &[u64], |item| *item).is_empty());
    }
}
