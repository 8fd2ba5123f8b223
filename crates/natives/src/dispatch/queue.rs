//! Handlers of any type, posted now and run later, by this thread or by another.
//!
//! ```text
//! post(f) -> the thread's own open chunk -> full, or run() -> Hub (one lock per chunk) -> any thread's run()
//! ```
//!
//! A chunk stores each handler inline, behind the address of the function that runs it: no allocation and no
//! list node per handler, and threads synchronise once per thousand handlers. The price: a handler that is
//! posted outside of the loop becomes visible to other threads only when its chunk is full or when its thread
//! runs the loop.

#![allow(unsafe_code, reason = "closures of different types are stored side by side in one buffer")]

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

/// Words of a chunk: 16 KiB, a thousand small handlers, half of the L1 cache of every current CPU. Half as
/// many double the number of synchronisations; twice as many gain nothing measurable.
const WORDS: usize = 2048;
const _: () = assert!(size_of::<Thunk>() == size_of::<Word>(), "a thunk takes one word");
/// Words of the largest inline handler. Larger ones are boxed, so that every handler fits an empty chunk.
const LARGEST: usize = 32;

type Word = MaybeUninit<u64>;
/// Moves `at` behind the handler at `at`, then runs the handler; without a queue, drops it.
type Thunk = unsafe fn(words: *mut Word, at: &mut usize, queue: Option<&mut Queue>);

/// Exchanges chunks between threads.
#[derive(Debug, Default)]
pub struct Hub(Mutex<VecDeque<Chunk>>);

/// A thread's end of the queue.
#[derive(Debug)]
pub struct Queue {
    hub: Arc<Hub>,
    open: Chunk,
    /// Emptied chunks, reused before new ones are allocated.
    spare: Vec<Chunk>,
}

impl Queue {
    pub fn new(hub: Arc<Hub>) -> Self {
        Self { hub, open: Chunk::new(), spare: Vec::new() }
    }

    /// Queues `handler`. Its argument is the queue of the thread that runs it; it may post to that queue.
    #[inline]
    pub fn post<F: FnOnce(&mut Self) + Send + 'static>(&mut self, handler: F) {
        if size_of::<F>() > LARGEST * size_of::<Word>() || align_of::<F>() > align_of::<Word>() {
            let boxed: Box<dyn FnOnce(&mut Self) + Send> = Box::new(handler);
            return self.post(boxed);
        }
        if self.open.words.len() - self.open.end < 1 + words_of::<F>() {
            self.hand_over();
        }
        self.open.push(handler);
    }

    /// Makes this thread's posted handlers available to other threads.
    #[cold]
    pub fn hand_over(&mut self) {
        if self.open.at < self.open.end {
            let fresh = self.spare.pop().unwrap_or_else(Chunk::new);
            let full = std::mem::replace(&mut self.open, fresh);
            self.hub.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(full);
        }
    }

    /// Runs handlers, including those that handlers post, until none is left.
    pub fn run(&mut self) {
        loop {
            self.hand_over();
            let next = self.hub.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(mut chunk) = next else { return };
            chunk.run(self);
            self.spare.push(chunk);
        }
    }
}

/// A piece of the queue: a sequence of `(thunk, handler)`.
#[derive(Debug)]
struct Chunk {
    words: Box<[Word; WORDS]>,
    /// The next handler to run, and the next free word. Between the two are whole handlers that were not run.
    at: usize,
    end: usize,
}

// SAFETY: a chunk owns its words; they are function addresses and handlers, and `push` accepts only handlers
// that are `Send`.
unsafe impl Send for Chunk {}

impl Chunk {
    fn new() -> Self {
        Self { words: Box::new([Word::uninit(); WORDS]), at: 0, end: 0 }
    }

    /// The caller has checked that there is room.
    #[inline]
    fn push<F: FnOnce(&mut Queue) + Send + 'static>(&mut self, handler: F) {
        let place = &mut self.words[self.end..=self.end + words_of::<F>()];
        let thunk: Thunk = step::<F>;
        let place = place.as_mut_ptr();
        // SAFETY: `place` has one word for the thunk and `words_of::<F>()` words behind it, enough for an
        // `F`. Words are aligned for a function pointer, and for `F`, since `post` boxes handlers with a
        // larger alignment.
        unsafe {
            place.cast::<Thunk>().write(thunk);
            place.add(1).cast::<F>().write(handler);
        }
        self.end += 1 + words_of::<F>();
    }

    #[inline]
    fn run(&mut self, queue: &mut Queue) {
        while self.at < self.end {
            let thunk = self.thunk();
            // SAFETY: `push` stored `thunk` with the handler behind it, and each runs once: the thunk moves
            // `at` first.
            unsafe { thunk(self.words.as_mut_ptr(), &mut self.at, Some(queue)) };
        }
        (self.at, self.end) = (0, 0);
    }

    #[inline]
    fn thunk(&self) -> Thunk {
        // SAFETY: `at` is below `end`, so `push` wrote a `Thunk` into this word.
        unsafe { self.words[self.at].as_ptr().cast::<Thunk>().read() }
    }
}

impl Drop for Chunk {
    /// Handlers that did not run are dropped, not leaked.
    fn drop(&mut self) {
        while self.at < self.end {
            let thunk = self.thunk();
            // SAFETY: as in `run`.
            unsafe { thunk(self.words.as_mut_ptr(), &mut self.at, None) };
        }
    }
}

const fn words_of<F>() -> usize {
    size_of::<F>().div_ceil(size_of::<Word>())
}

/// SAFETY: the caller passes the start of a chunk's words and the place of a handler of type `F` in it, and
/// passes that place once.
unsafe fn step<F: FnOnce(&mut Queue)>(words: *mut Word, at: &mut usize, queue: Option<&mut Queue>) {
    let place = *at + 1;
    // Before the handler runs: a handler that panics is not run again.
    *at = place + words_of::<F>();
    // SAFETY: the caller's promise; `push` has written an `F` there, and the read moves it out.
    let handler = unsafe { words.add(place).cast::<F>().read() };
    if let Some(queue) = queue {
        handler(queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn handlers_of_every_size_run_in_the_order_they_were_posted() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut queue = Queue::new(Arc::default());
        for i in 0..3000_u64 {
            let log = log.clone();
            match i % 3 {
                0 => queue.post(move |_| log.lock().unwrap().push(i)),
                1 => {
                    let ballast = [i; 300];
                    queue.post(move |_| log.lock().unwrap().push(ballast[299]));
                }
                _ => {
                    let aligned = Aligned(i);
                    queue.post(move |_| {
                        let aligned = aligned;
                        log.lock().unwrap().push(aligned.0);
                    });
                }
            }
        }
        queue.run();
        assert_eq!(*log.lock().unwrap(), (0..3000).collect::<Vec<_>>());
    }

    #[repr(align(64))]
    struct Aligned(u64);

    #[test]
    fn handlers_that_handlers_post_run_too() {
        fn again(left: u64, count: Arc<AtomicU64>) -> impl FnOnce(&mut Queue) + Send + 'static {
            move |queue| {
                count.fetch_add(1, Relaxed);
                if left > 0 {
                    let next: Box<dyn FnOnce(&mut Queue) + Send> = Box::new(again(left - 1, count));
                    queue.post(next);
                }
            }
        }
        let count = Arc::new(AtomicU64::new(0));
        let mut queue = Queue::new(Arc::default());
        queue.post(again(5000, count.clone()));
        queue.run();
        assert_eq!(count.load(Relaxed), 5001);
    }

    #[test]
    fn several_threads_run_each_handler_once() {
        let (hub, count) = (Arc::new(Hub::default()), Arc::new(AtomicU64::new(0)));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut queue = Queue::new(hub.clone());
                    for _ in 0..10_000 {
                        let count = count.clone();
                        queue.post(move |_| {
                            count.fetch_add(1, Relaxed);
                        });
                    }
                    queue.run();
                });
            }
        });
        assert_eq!(count.load(Relaxed), 40_000);
        assert_eq!(Arc::strong_count(&count), 1);
    }

    #[test]
    fn handlers_that_never_run_are_dropped_once() {
        let owned = Arc::new(());
        let mut queue = Queue::new(Arc::default());
        for _ in 0..5000 {
            let owned = owned.clone();
            queue.post(move |_| drop(owned));
        }
        drop(queue);
        assert_eq!(Arc::strong_count(&owned), 1);
    }

    #[test]
    fn a_handler_that_panics_is_not_run_or_dropped_again() {
        let owned = Arc::new(());
        let mut queue = Queue::new(Arc::default());
        let first = owned.clone();
        queue.post(move |_| {
            let _first = first;
            panic!("on purpose");
        });
        let second = owned.clone();
        queue.post(move |_| drop(second));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.run()));
        assert!(outcome.is_err());
        drop(queue);
        assert_eq!(Arc::strong_count(&owned), 1);
    }
}
