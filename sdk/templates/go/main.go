// NAME as a system of linerate (sdk/CONTRACT.md). This skeleton does rr with a goroutine for each connection: replace
// serve and drive by the library under test.
package main

import (
	"bytes"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"linerate.dev/sdk"
)

func main() {
	sdk.Start(sdk.Program{
		Name: "NAME",
		// Replace this by the version of the library under test, from the library.
		Version:   "0.1.0",
		Roles:     []string{"client", "server"},
		Layers:    []string{"tcp"},
		Workloads: []string{"rr"},
		Run:       run,
	})
}

func run(spec *sdk.Spec) (*sdk.Done, error) {
	if spec.Rate != 0 {
		return nil, sdk.Unsupported(`an open loop ("rate")`)
	}
	switch [3]string{spec.Role, spec.Layer, spec.Workload} {
	case [3]string{"server", "tcp", "rr"}:
		return nil, serve(spec)
	case [3]string{"client", "tcp", "rr"}:
		if spec.Operations == 0 && spec.DurationNs == 0 || spec.Size < 1 || spec.Connect == "" {
			return nil, sdk.BadSpec("\"connect\", \"size\", or \"operations\" and \"duration_ns\" are missing")
		}
		return drive(spec)
	}
	return nil, sdk.Unsupported(spec.Role + " of " + spec.Workload + " over " + spec.Layer)
}

// serve echoes until SIGTERM.
func serve(spec *sdk.Spec) error {
	terminated := sdk.Terminated()
	listener, err := net.Listen("tcp", spec.Listen)
	if err != nil {
		return err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				continue
			}
			// A peer that vanishes ends its own goroutine only.
			go echo(connection)
		}
	}()
	sdk.Ready(listener.Addr().String())
	<-terminated
	return nil
}

func echo(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, 65536)
	for {
		length, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err := connection.Write(buffer[:length]); err != nil {
			return
		}
	}
}

// drive makes operations on each connection: send, receive all of it, compare.
func drive(spec *sdk.Spec) (*sdk.Done, error) {
	message := sdk.Page(spec.Size)
	connections := make([]net.Conn, spec.Connections)
	for i := range connections {
		connection, err := net.DialTimeout("tcp", spec.Connect, spec.Timeout())
		if err != nil {
			return nil, err
		}
		defer connection.Close()
		connections[i] = connection
	}
	left := int64(spec.Operations)
	if left == 0 {
		left = math.MaxInt64
	}
	window := sdk.OpenWindow(spec)
	tallies := make([]*sdk.Tally, spec.Connections)
	var all sync.WaitGroup
	for i := range connections {
		all.Add(1)
		tallies[i] = window.NewTally()
		go func(i int) {
			defer all.Done()
			exchange(connections[i], message, window, &left, spec.Timeout(), tallies[i])
		}(i)
	}
	all.Wait()
	return window.Close(tallies), nil
}

func exchange(connection net.Conn, message []byte, window *sdk.Window, left *int64, timeout time.Duration, tally *sdk.Tally) {
	answer := make([]byte, len(message))
	for !window.IsOver(sdk.Now()) && atomic.AddInt64(left, -1) >= 0 {
		began := sdk.Now()
		connection.SetDeadline(time.Now().Add(timeout))
		received := 0
		_, err := connection.Write(message)
		if err == nil {
			received, err = io.ReadFull(connection, answer)
		}
		if err != nil {
			// A failed connection is over; the other connections make its remaining operations.
			tally.Fail(sdk.StreamError(err, received))
			return
		}
		if bytes.Equal(answer, message) {
			tally.Succeed(began, sdk.Now(), len(message))
		} else {
			tally.Fail("wrong_content")
		}
	}
}
