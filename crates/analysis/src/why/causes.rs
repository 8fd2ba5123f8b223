//! Known causes, by the functions that are below them.

use linerate_model::PairProfile;
use serde::Serialize;
use std::collections::BTreeSet;

/// Causes by which programs are often slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Frees memory that nothing refers to.
    Collector,
    Allocation,
    /// A thread waits for a lock, or takes a contended one.
    Lock,
    PageFaults,
    Compression,
    TlsHandshakes,
}

/// Parts of names by cause. The names are those of runtimes and libraries, which users do not choose.
const PARTS: [(Cause, &[&str]); 6] = [
    (
        Cause::Collector,
        &[
            "runtime.gcBgMarkWorker",
            "runtime.gcAssistAlloc",
            "runtime.bgsweep",
            "runtime.gcStart",
            "v8::internal::Heap::CollectGarbage",
            "v8::internal::MarkCompact",
            "v8::internal::Scavenge",
            "v8::internal::ConcurrentMarking",
            "G1ParTask",
            "G1YoungCollector",
            "G1CollectedHeap::do_collection",
            "VM_G1Collect",
            "SerialHeap::do_collection",
            "ParallelScavenge",
            "ZCollect",
            "ShenandoahConcurrent",
            "gc_collect_main",
            "_PyGC_Collect",
        ],
    ),
    (
        Cause::Allocation,
        &[
            "runtime.mallocgc",
            "runtime.newobject",
            "__libc_malloc",
            "_int_malloc",
            "_int_free",
            "__libc_free",
            "operator new",
        ],
    ),
    (
        Cause::Lock,
        &[
            "__x64_sys_futex",
            "__arm64_sys_futex",
            "___pthread_mutex_lock",
            "pthread_mutex_lock",
            "__lll_lock_wait",
            "runtime.lock2",
            "sync.(*Mutex).lockSlow",
            "sync::poison::mutex",
            "parking_lot::",
            "futex_mutex",
            "ObjectMonitor::enter",
        ],
    ),
    (
        Cause::PageFaults,
        &["[k] asm_exc_page_fault", "[k] exc_page_fault", "[k] do_user_addr_fault", "[k] el0_da"],
    ),
    (
        Cause::Compression,
        &["deflate", "compress/flate", "brotli", "BrotliEncoder", "ZSTD_compress", "libz.so"],
    ),
    (
        Cause::TlsHandshakes,
        &[
            "tls_construct_server_hello",
            "tls_process_client_hello",
            "handshakeServer",
            "serverHandshake",
            "RSA_sign",
            "rsa_ossl_private",
            "ecdsa_sign",
            "ECDSA_sign",
            "tls_post_process_client",
            "rustls::server::hs",
        ],
    ),
];

/// True for a function whose work has its own name: compression, a collector, a handshake.
pub(super) fn is_work(name: &str) -> bool {
    let is_own =
        |cause: &Cause| matches!(cause, Cause::Collector | Cause::Compression | Cause::TlsHandshakes);
    PARTS
        .iter()
        .filter(|(cause, _)| is_own(cause))
        .any(|(_, parts)| parts.iter().any(|part| name.contains(part)))
}

/// The causes below which a stack is.
pub(super) fn of_stack(pair: &PairProfile, frames: &[u32]) -> BTreeSet<Cause> {
    let names = || frames.iter().filter_map(|frame| pair.names.get(*frame as usize));
    let has = |parts: &[&str]| names().any(|name| parts.iter().any(|part| name.contains(part)));
    PARTS.iter().filter(|(_, parts)| has(parts)).map(|(cause, _)| *cause).collect()
}
