package main

import (
	"testing"

	"linerate.dev/sdk"
)

func TestEveryShapeRunsEveryHandler(t *testing.T) {
	for name, pass := range map[string]func(operations, threads uint64) uint64{
		"single": single, "threads": several, "interleaved": interleaved, "concurrent": concurrent,
	} {
		for _, threads := range []uint64{1, 3} {
			if ran := pass(10_007, threads); ran != 10_007 {
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
	spec.DurationNs = 20_000_000
	done, err := dispatch(spec)
	if err != nil || done.Operations <= 100 || done.Operations%100 != 0 || done.EndNs < done.StartNs+spec.DurationNs {
		t.Fatal(done, err)
	}
}
