package main

import (
	"encoding/binary"
	"io"
	"math"
	"net"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"linerate.dev/sdk"
)

const (
	// Input that an echo server reads at once, the same for every system.
	echoBuffer = 65_536
	// Buffers are held in memory, one for each connection.
	largestWrite = 16 << 20
)

// accept listens at an address and serves each connection in a goroutine of its own.
func accept(s *stack.Stack, at tcpip.FullAddress, serve func(net.Conn)) error {
	// TCP_NODELAY is the default of gonet's connections, as it is of package net.
	listener, err := gonet.ListenTCP(s, at, ipv4.ProtocolNumber)
	if err != nil {
		return err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				// A peer that vanishes ends its connection and nothing else.
				defer connection.Close()
				serve(connection)
			}()
		}
	}()
	return nil
}

// conversation is what is done with a connection.
func conversation(spec *sdk.Spec) (func(net.Conn), error) {
	switch spec.Workload {
	case "rr", "churn", "fanout":
		return echo, nil
	case "stream":
		direction := spec.Options["direction"]
		if direction != "client-writes" && direction != "client-reads" && direction != "both" {
			return nil, sdk.BadSpec(`"options.direction" must be client-writes, client-reads or both`)
		}
		if spec.Size < 1 || spec.Size > largestWrite {
			return nil, sdk.BadSpec(`"size" must be 1 to 16777216 bytes`)
		}
		s := &stream{direction != "client-reads", direction != "client-writes", sdk.NewContent(spec.Size), spec.Size}
		if _, counted := spec.Options["transfers"]; !counted {
			return s.serve, nil
		} else if direction == "both" {
			return nil, sdk.BadSpec("counted streams go one way at a time")
		}
		return s.serveCounted, nil
	}
	return nil, sdk.Unsupported("workload " + spec.Workload)
}

func echo(connection net.Conn) {
	buffer := make([]byte, echoBuffer)
	for {
		n, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err := connection.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// stream is which way the payload goes, in writes and reads of which size.
type stream struct {
	clientWrites, clientReads bool
	content                   *sdk.Content
	size                      int
}

func (s *stream) serve(connection net.Conn) {
	var wanted uint64
	if s.clientReads {
		if binary.Read(connection, binary.LittleEndian, &wanted) != nil {
			return
		}
	}
	written := make(chan error, 1)
	if !s.clientWrites {
		// The client closes when it has all.
		if s.write(connection, wanted) == nil && closeWrite(connection) == nil {
			_, _ = connection.Read(make([]byte, 1))
		}
		return
	}
	go func() { written <- s.write(connection, wanted) }()
	good, err := s.read(connection, math.MaxUint64)
	if err == nil && <-written == nil {
		_ = binary.Write(connection, binary.LittleEndian, good)
	}
}

// serveCounted serves transfers that follow one another, each behind its length.
func (s *stream) serveCounted(connection net.Conn) {
	for {
		var number uint64
		if binary.Read(connection, binary.LittleEndian, &number) != nil {
			return
		}
		if s.clientReads {
			if s.write(connection, number) != nil {
				return
			}
			continue
		}
		good, err := s.read(connection, number)
		if err != nil || binary.Write(connection, binary.LittleEndian, good) != nil {
			return
		}
	}
}

func closeWrite(connection net.Conn) error {
	return connection.(interface{ CloseWrite() error }).CloseWrite()
}

func (s *stream) write(connection net.Conn, total uint64) error {
	for at := uint64(0); at < total; {
		n, err := connection.Write(s.content.At(at, int(min(total-at, uint64(s.size)))))
		if err != nil {
			return err
		}
		at += uint64(n)
	}
	return nil
}

// read compares total bytes, or up to the peer's end: how many good ones there were.
func (s *stream) read(connection net.Conn, total uint64) (good uint64, err error) {
	buffer := make([]byte, s.size)
	for at := uint64(0); at < total; {
		n, err := connection.Read(buffer[:min(total-at, uint64(s.size))])
		good += s.content.Good(at, buffer[:n])
		at += uint64(n)
		if err == io.EOF {
			return good, nil
		}
		if err != nil {
			return good, err
		}
	}
	return good, nil
}
