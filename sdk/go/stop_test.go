package sdk

import (
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

func TestAStreamStopsByBytesOrByTime(t *testing.T) {
	spec := &Spec{Connect: "127.0.0.1:1", Bytes: 2_500}
	stop, err := NewStopCondition(spec)
	if err != nil || stop.ByTime() {
		t.Fatal(stop, err)
	}
	for at, want := range map[uint64]int{0: 1_000, 2_000: 500, 2_500: 0} {
		if got := stop.Piece(at, 1_000); got != want {
			t.Errorf("after %d bytes %d follow, not %d", at, got, want)
		}
	}
	spec.Bytes, spec.DurationNs = 0, 1
	stop, err = NewStopCondition(spec)
	if err != nil || !stop.ByTime() || stop.Bytes != math.MaxUint64 || stop.Reached(0) {
		t.Fatal(stop, err)
	}
	stop.Start(OpenWindow(spec))
	time.Sleep(time.Millisecond)
	if stop.Piece(0, 10) != 0 || stop.First(10) != 10 {
		t.Fatal("the time is over, so only the first piece may follow")
	}
	if _, err := NewStopCondition(&Spec{Connect: "127.0.0.1:1"}); err == nil {
		t.Fatal("a stream without an end was accepted")
	}
}

func TestTransfersFollowUntilTheirNumberIsMadeOrTheTimeIsOver(t *testing.T) {
	spec := &Spec{Connect: "127.0.0.1:1", Bytes: 2_500}
	counted, _ := NewStopCondition(spec)
	if !counted.Another(2, 3) || counted.Another(3, 3) {
		t.Fatal("three transfers")
	}
	spec.DurationNs = uint64(time.Hour)
	timed, _ := NewStopCondition(spec)
	timed.Start(OpenWindow(spec))
	if !timed.Another(7, 3) || timed.ByTime() || timed.Piece(2_000, 1_000) != 500 {
		t.Fatal("the number does not apply, and a transfer has its bytes")
	}
	timed.until = 1
	if timed.Another(1, 3) || !timed.Another(0, 3) || timed.Reached(0) {
		t.Fatal("the time is over: only a first transfer begins")
	}
}

func TestTheWatchdogBreaksAStalledConnection(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	var progress atomic.Uint64
	defer Watchdog(here, &progress, 20*time.Millisecond)()
	if _, err := here.Read(make([]byte, 1)); StreamError(err, 0) != "timeout" {
		t.Fatal(err)
	}
}
