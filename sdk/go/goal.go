package sdk

import (
	"math"
	"net"
	"sync/atomic"
	"time"
)

// How often a watched connection is looked at within its timeout: one that stands still is noticed at most 1/8 of it late.
const checks = 8

// Goal is when one direction of a stream is over: after so many bytes, or at a point of the clock.
type Goal struct {
	Bytes    uint64
	until    uint64
	duration uint64
}

// Whole is all of so many bytes.
func Whole(bytes uint64) Goal { return Goal{Bytes: bytes, until: math.MaxUint64} }

// NewGoal is what a client is asked for.
func NewGoal(spec *Spec) (Goal, error) {
	if spec.Connect == "" || spec.Bytes == 0 && spec.DurationNs == 0 {
		return Goal{}, BadSpec(`a stream needs "connect", and "bytes" or "duration_ns"`)
	}
	if spec.Bytes > 0 {
		return Whole(spec.Bytes), nil
	}
	goal := Whole(math.MaxUint64)
	goal.duration = spec.DurationNs
	return goal, nil
}

// ByTime is true if no number of bytes ends it.
func (g Goal) ByTime() bool { return g.duration > 0 }

// Start lets the time of one by time begin.
func (g *Goal) Start(window Window) {
	if g.ByTime() {
		g.until = window.Start() + g.duration
	}
}

// Reached tells whether it is over with so many bytes.
func (g Goal) Reached(at uint64) bool {
	return at >= g.Bytes || g.until != math.MaxUint64 && Now() >= g.until
}

// Piece is how long the next piece of up to size bytes is; 0 if the goal is reached.
func (g Goal) Piece(at uint64, size int) int {
	switch left := g.Bytes - at; {
	case g.Reached(at):
		return 0
	case left < uint64(size):
		return int(left)
	}
	return size
}

// First is how long the first piece is, whatever the time.
func (g Goal) First(size int) int { return Whole(g.Bytes).Piece(0, size) }

// Watch breaks a connection that has not moved for the timeout, until it is told to stop. One timer for a connection, not
// one for each operation: that is what a client with many requests does, and what the other systems do.
func Watch(connection net.Conn, moved *atomic.Uint64, timeout time.Duration) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(timeout/checks + 1)
		defer ticker.Stop()
		seen, still := moved.Load(), 0
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			now := moved.Load()
			if still++; now != seen {
				seen, still = now, 0
			}
			if still > checks {
				_ = connection.SetDeadline(time.Unix(1, 0))
				return
			}
		}
	}()
	return func() { close(done) }
}
