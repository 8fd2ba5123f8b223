package main

import (
	"testing"

	"linerate.dev/sdk"
)

func TestEveryShapeRunsEveryHandler(t *testing.T) {
	for name, pass := range map[string]func(operations, threads uint64, posted func()) uint64{
		"single": single, "threads": several, "interleaved": interleaved, "concurrent": concurrent,
	} {
		for _, threads := range []uint64{1, 3} {
			if ran := pass(10_007, threads, func() {}); ran != 10_007 {
				t.Errorf("%s on %d: %d", name, threads, ran)
			}
		}
	}
}

func TestPassesFollowOneAnotherUntilTheTimeIsOver(t *testing.T) {
	spec := &sdk.Spec{Operations: 100, Threads: 1, Options: map[string]string{"shape": "single"}}
	if done, err := dispatch(spec); err != nil || done.Operations != 100 {
		t.Fatal(done, err)
	}
	run := &sdk.Spec{Operations: 100, Threads: 2, DurationNs: 20_000_000, Options: map[string]string{"shape": "run"}}
	if done, err := dispatch(run); err != nil || done.Operations != 100 || done.EndNs >= done.StartNs+20_000_000 {
		t.Fatal("run is one pass, without the time of posting", done, err)
	}
	spec.DurationNs = 20_000_000
	done, err := dispatch(spec)
	if err != nil || done.Operations <= 100 || done.Operations%100 != 0 || done.EndNs < done.StartNs+spec.DurationNs {
		t.Fatal(done, err)
	}
}
