package sdk

import (
	"math"
	"sync/atomic"
	"time"
)

// A watchdog checks its connection this often within the timeout: a stall is noticed at most 1/8 of the timeout late.
const checks = 8

// StopCondition ends one direction of a stream: after a number of bytes, or at a point of the clock. With both, the clock
// ends the sequence of transfers.
type StopCondition struct {
	Bytes    uint64
	until    uint64
	duration uint64
}

// StopAfter stops after a number of bytes.
func StopAfter(bytes uint64) StopCondition { return StopCondition{Bytes: bytes, until: math.MaxUint64} }

// NewStopCondition reads the stop condition of a client's spec.
func NewStopCondition(spec *Spec) (StopCondition, error) {
	if spec.Connect == "" || spec.Bytes == 0 && spec.DurationNs == 0 {
		return StopCondition{}, BadSpec(`a stream needs "connect", and "bytes" or "duration_ns"`)
	}
	stop := StopAfter(math.MaxUint64)
	if spec.Bytes > 0 {
		stop.Bytes = spec.Bytes
	}
	stop.duration = spec.DurationNs
	return stop, nil
}

// ByTime is true if the clock ends the stream and not a number of bytes.
func (s StopCondition) ByTime() bool { return s.duration > 0 && s.Bytes == math.MaxUint64 }

// Start starts the time of the stream.
func (s *StopCondition) Start(window *Window) {
	if s.duration > 0 {
		s.until = window.end
	}
}

// Reached is true if the stream is over after this number of bytes.
func (s StopCondition) Reached(at uint64) bool {
	return at >= s.Bytes || s.ByTime() && Now() >= s.until
}

// Another is true if a transfer follows the first ones of a connection: one of the spec's number, or with bytes and a
// duration any until the time is over.
func (s StopCondition) Another(made, transfers int) bool {
	if s.duration == 0 || s.ByTime() {
		return made < transfers
	}
	return made == 0 || Now() < s.until
}

// Piece returns the length of the next piece, at most size bytes; 0 if the stream is over.
func (s StopCondition) Piece(at uint64, size int) int {
	switch left := s.Bytes - at; {
	case s.Reached(at):
		return 0
	case left < uint64(size):
		return int(left)
	}
	return size
}

// First returns the length of the first piece, whatever the time.
func (s StopCondition) First(size int) int { return StopAfter(s.Bytes).Piece(0, size) }

// Watchdog breaks a connection that has not progressed within the timeout, until stop is called. It is one timer per
// connection and not one per operation, as in clients with many requests and in the other systems.
func Watchdog(connection interface{ SetDeadline(time.Time) error }, progress *atomic.Uint64, timeout time.Duration) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(timeout/checks + 1)
		defer ticker.Stop()
		seen, stalled := progress.Load(), 0
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			now := progress.Load()
			if stalled++; now != seen {
				seen, stalled = now, 0
			}
			if stalled > checks {
				_ = connection.SetDeadline(time.Unix(1, 0))
				return
			}
		}
	}()
	return func() { close(done) }
}
