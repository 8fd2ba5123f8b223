package sdk

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Tally counts the operations of one goroutine. It shares nothing, and is merged when the window closes.
type Tally struct {
	operations, bytes, verified, inFlight, end uint64
	// Nil: every operation counts, whenever it ends.
	window *Window
	// Of the longest flow of datagrams, by the server's clock.
	flow             uint64
	errors           map[string]uint64
	latency, connect *Histogram
	datagrams        *Datagrams
}

// Succeed counts an operation between these points of the clock whose content was compared.
func (t *Tally) Succeed(began, now uint64, bytes int) {
	if t.wasInFlight(now, 1) {
		return
	}
	t.operations++
	t.verified++
	t.bytes += uint64(bytes)
	t.end = now
	t.RecordLatency(now - began)
}

// Connected records the time until a connection was established.
func (t *Tally) Connected(took uint64) {
	if t.connect == nil {
		t.connect = &Histogram{}
	}
	t.connect.Record(took)
}

// Ended counts operations without payload and latency.
func (t *Tally) Ended(count, now uint64) {
	if t.wasInFlight(now, count) {
		return
	}
	t.operations += count
	t.verified += count
	t.end = now
}

// RecordLatency records the time of an operation or a transfer.
func (t *Tally) RecordLatency(nanos uint64) {
	if t.latency == nil {
		t.latency = &Histogram{}
	}
	t.latency.Record(nanos)
}

// Streamed counts the bytes of a stream in writes of size: those wanted, and those good at the receiver.
func (t *Tally) Streamed(good, wanted, size uint64) {
	t.operations += (good + size - 1) / size
	t.bytes += good
	t.verified += good
	if good < wanted {
		t.FailTimes("wrong_content", (wanted-good+size-1)/size)
	}
	t.end = Now()
}

// Fail counts a failed operation.
func (t *Tally) Fail(kind string) { t.FailTimes(kind, 1) }

// FailTimes counts operations that failed in the same way. After the window's end only the end of its time is a failure.
func (t *Tally) FailTimes(kind string, count uint64) {
	now := Now()
	if t.wasInFlight(now, count) && kind != "timeout" && kind != "connect_timeout" {
		return
	}
	if t.errors == nil {
		t.errors = map[string]uint64{}
	}
	t.errors[kind] += count
	t.end = now
}

// wasInFlight counts operations that end after the window's end, and returns whether they do.
func (t *Tally) wasInFlight(now, count uint64) bool {
	if t.window == nil || !t.window.leavesOut(now) {
		return false
	}
	t.inFlight += count
	return true
}

// Merge adds the tally of another goroutine.
func (t *Tally) Merge(other *Tally) {
	t.operations += other.operations
	t.bytes += other.bytes
	t.verified += other.verified
	t.inFlight += other.inFlight
	if other.end > t.end {
		t.end = other.end
	}
	if other.flow > t.flow {
		t.flow = other.flow
	}
	for kind, count := range other.errors {
		if t.errors == nil {
			t.errors = map[string]uint64{}
		}
		t.errors[kind] += count
	}
	if other.datagrams != nil {
		if t.datagrams == nil {
			t.datagrams = &Datagrams{}
		}
		t.datagrams.add(*other.datagrams)
	}
	t.latency = merged(t.latency, other.latency)
	t.connect = merged(t.connect, other.connect)
}

func merged(sum, part *Histogram) *Histogram {
	if part == nil {
		return sum
	}
	if sum == nil {
		sum = &Histogram{}
	}
	sum.Merge(part)
	return sum
}

// Done is the last line of a client.
type Done struct {
	Event      string            `json:"event"`
	Operations uint64            `json:"operations"`
	Bytes      uint64            `json:"bytes"`
	StartNs    uint64            `json:"start_ns"`
	EndNs      uint64            `json:"end_ns"`
	InFlight   uint64            `json:"in_flight,omitempty"`
	Errors     map[string]uint64 `json:"errors"`
	Latency    *Counts           `json:"latency,omitempty"`
	Connect    *Counts           `json:"connect,omitempty"`
	CPUNs      uint64            `json:"cpu_ns"`
	Verified   uint64            `json:"verified"`
	Datagrams  *Datagrams        `json:"datagrams,omitempty"`
	// Version, cipher suite and library, on layers with TLS.
	TLS string `json:"tls,omitempty"`
}

// ConnectError returns the kind of an error before a connection was established.
func ConnectError(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return "connect_timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connect_refused"
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE):
		return "address_exhausted"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "descriptor_exhausted"
	}
	if isTimeout(err) {
		return "connect_timeout"
	}
	return "connect_failed"
}

// isTimeout is true for an error that a library has made of an exceeded deadline, too.
func isTimeout(err error) bool {
	timeout, ok := err.(interface{ Timeout() bool })
	return ok && timeout.Timeout()
}

// StreamError returns the kind of an error on an established connection, after this many bytes of the answer.
func StreamError(err error, received int) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT), isTimeout(err):
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF) && received == 0:
		return "empty_reply"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "truncated"
	}
	return "failed"
}
