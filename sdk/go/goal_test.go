package sdk

import (
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

func TestAGoalIsReachedByBytesOrByTime(t *testing.T) {
	spec := &Spec{Connect: "127.0.0.1:1", Bytes: 2_500}
	goal, err := NewGoal(spec)
	if err != nil || goal.ByTime() {
		t.Fatal(goal, err)
	}
	for at, want := range map[uint64]int{0: 1_000, 2_000: 500, 2_500: 0} {
		if got := goal.Piece(at, 1_000); got != want {
			t.Errorf("after %d bytes %d follow, not %d", at, got, want)
		}
	}
	spec.Bytes, spec.DurationNs = 0, 1
	goal, err = NewGoal(spec)
	if err != nil || !goal.ByTime() || goal.Bytes != math.MaxUint64 || goal.Reached(0) {
		t.Fatal(goal, err)
	}
	goal.Start(OpenWindow())
	time.Sleep(time.Millisecond)
	if goal.Piece(0, 10) != 0 || goal.First(10) != 10 {
		t.Fatal("its time is over, and nothing but the first piece follows")
	}
	if _, err := NewGoal(&Spec{Connect: "127.0.0.1:1"}); err == nil {
		t.Fatal("a stream without an end was taken")
	}
}

func TestWhatDoesNotMoveIsBroken(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	var moved atomic.Uint64
	defer Watch(here, &moved, 20*time.Millisecond)()
	if _, err := here.Read(make([]byte, 1)); StreamError(err, 0) != "timeout" {
		t.Fatal(err)
	}
}
