package main

import "testing"

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
