package main

import (
	"fmt"
	"sync"
	"sync/atomic"

	"linerate.dev/sdk"
)

const (
	// From the contract: handlers posted before each run of "interleaved", and the part of the warm-up pass.
	interleave = 100
	warmUp     = 10
)

// dispatch posts functions to a buffered channel, and goroutines run the functions that they receive: a work queue in Go.
func dispatch(spec *sdk.Spec) (*sdk.Done, error) {
	shape := spec.Options["shape"]
	pass, there := map[string]func(operations, threads uint64, posted func()) uint64{
		"single": single, "threads": several, "run": several, "interleaved": interleaved, "concurrent": concurrent,
	}[shape]
	if !there {
		return nil, sdk.BadSpec(`"options.shape" must be single, threads, run, interleaved or concurrent`)
	}
	if spec.Operations == 0 {
		return nil, sdk.BadSpec(`"operations" must be above 0`)
	}
	posted := func() {}
	pass((spec.Operations+warmUp-1)/warmUp, uint64(spec.Threads), posted)
	window := sdk.OpenWindow(spec)
	if shape == "run" {
		spec.DurationNs = 0
		posted = window.Reopen
	}
	tally := window.NewTally()
	// Without a duration the time is over after the first pass.
	for now, end := uint64(0), window.Start()+spec.DurationNs; now < end; {
		ran := pass(spec.Operations, uint64(spec.Threads), posted)
		if ran != spec.Operations {
			return nil, fmt.Errorf("%d handlers ran, %d were posted", ran, spec.Operations)
		}
		now = sdk.Now()
		tally.Ended(ran, now)
	}
	return window.Close([]*sdk.Tally{tally}), nil
}

// post queues functions that add one to a counter of one goroutine.
func post(queue chan<- func(), counter *uint64, count uint64) {
	for ; count > 0; count-- {
		queue <- func() { *counter++ }
	}
}

// postShared is post for a counter that goroutines share.
func postShared(queue chan<- func(), counter *atomic.Uint64, count uint64) {
	for ; count > 0; count-- {
		queue <- func() { counter.Add(1) }
	}
}

// drain runs queued functions until the queue is empty.
func drain(queue <-chan func()) {
	for {
		select {
		case handler := <-queue:
			handler()
		default:
			return
		}
	}
}

func single(operations, _ uint64, _ func()) uint64 {
	var counter uint64
	queue := make(chan func(), operations)
	post(queue, &counter, operations)
	drain(queue)
	return counter
}

func interleaved(operations, _ uint64, _ func()) uint64 {
	var counter uint64
	queue := make(chan func(), interleave)
	for left := operations; left > 0; {
		batch := uint64(interleave)
		if left < batch {
			batch = left
		}
		post(queue, &counter, batch)
		drain(queue)
		left -= batch
	}
	return counter
}

func several(operations, threads uint64, posted func()) uint64 {
	var counter atomic.Uint64
	queue := make(chan func(), operations)
	postShared(queue, &counter, operations)
	posted()
	together(threads, func(uint64) { drain(queue) })
	return counter.Load()
}

func concurrent(operations, threads uint64, _ func()) uint64 {
	var counter atomic.Uint64
	queue := make(chan func(), operations)
	together(threads, func(index uint64) {
		share := operations / threads
		if index < operations%threads {
			share++
		}
		postShared(queue, &counter, share)
		drain(queue)
	})
	return counter.Load()
}

// together runs work in count goroutines, and waits for all.
func together(count uint64, work func(index uint64)) {
	var group sync.WaitGroup
	for i := uint64(0); i < count; i++ {
		group.Add(1)
		go func(i uint64) {
			defer group.Done()
			work(i)
		}(i)
	}
	group.Wait()
}
