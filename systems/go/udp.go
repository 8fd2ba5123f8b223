package main

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"linerate.dev/sdk"
)

const (
	// HELLO and END go out again after this time.
	repeat = 50 * time.Millisecond
)

// serveDatagrams is one goroutine, which reads the one socket until SIGTERM.
func serveDatagrams(spec *sdk.Spec) (*sdk.Done, error) {
	right, err := sdk.NewDatagram(spec)
	if err != nil {
		return nil, err
	}
	if spec.Listen == "" {
		return nil, sdk.BadSpec(`"listen" is missing`)
	}
	address, err := netip.ParseAddrPort(spec.Listen)
	if err != nil {
		return nil, sdk.BadSpec(`"listen": ` + err.Error())
	}
	terminated := terminate()
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, err
	}
	sdk.Ready(socket.LocalAddr().String())
	go receive(socket, right)
	<-terminated
	return nil, nil
}

func receive(socket *net.UDPConn, right []byte) {
	receiver := sdk.NewReceiver(right)
	buffer := make([]byte, sdk.LargestDatagram+1)
	for {
		n, from, err := socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		if answer := receiver.Answer(from, buffer[:n]); answer != nil {
			// A client that went away asks for nothing again.
			_, _ = socket.WriteToUDPAddrPort(answer, from)
		}
	}
}

// flood is the client: a socket and a goroutine for each flow.
func flood(spec *sdk.Spec) (*sdk.Done, error) {
	datagram, err := sdk.NewDatagram(spec)
	if err != nil {
		return nil, err
	}
	limit, err := sdk.NewGoal(spec)
	if err != nil {
		return nil, err
	}
	t := &task{spec: spec}
	sockets, failures := make([]net.Conn, spec.Connections), make([]string, spec.Connections)
	for i := range sockets {
		sockets[i], failures[i] = t.greet()
	}
	window := t.openWindow()
	limit.Start(window)
	tallies := t.each(func(i int, tally *sdk.Tally) {
		if failures[i] != "" {
			tally.Fail(failures[i])
			return
		}
		defer sockets[i].Close()
		sent, kind := send(sockets[i], append([]byte{}, datagram...), limit)
		report, unreported := ask(sockets[i], sdk.Control(sdk.DatagramEnd, sent), sdk.DatagramReport, spec.Timeout())
		tally.Flowed(sent, report, spec.Size)
		if kind == "" {
			kind = unreported
		}
		if kind != "" {
			tally.Fail(kind)
		}
	})
	return window.Close(tallies), nil
}

func send(socket net.Conn, datagram []byte, limit sdk.Goal) (sent uint64, kind string) {
	for at := uint64(0); !limit.Reached(at); at += uint64(len(datagram)) {
		copy(datagram, sdk.Control(sent))
		if _, err := socket.Write(datagram); err != nil {
			return sent, socketError(err)
		}
		sent++
	}
	return sent, ""
}

// greet opens a flow's socket, and finds out whether there is a server at its other end.
func (t *task) greet() (net.Conn, string) {
	socket, err := t.dialAs("udp")
	if err != nil {
		return nil, sdk.ConnectError(err)
	}
	switch _, kind := ask(socket, sdk.Control(sdk.DatagramHello, 0), sdk.DatagramHello, t.spec.Timeout()); kind {
	case "":
		return socket, ""
	case "reset":
		return nil, "connect_refused"
	case "timeout":
		return nil, "connect_timeout"
	default:
		return nil, "connect_failed"
	}
}

// ask sends a control datagram until it is answered by one of that kind; a report, if it is one, or the kind of failure.
func ask(socket net.Conn, question []byte, wanted uint64, patience time.Duration) (sdk.Report, string) {
	buffer := make([]byte, sdk.LargestDatagram)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if _, err := socket.Write(question); err != nil {
			return sdk.Report{}, socketError(err)
		}
		_ = socket.SetReadDeadline(time.Now().Add(repeat))
		for {
			n, err := socket.Read(buffer)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return sdk.Report{}, socketError(err)
			}
			if kind, ok := sdk.ParseDatagram(buffer[:n]); ok && kind == wanted {
				if wanted == sdk.DatagramReport {
					return sdk.ParseReport(buffer[:n]), ""
				}
				return sdk.Report{}, ""
			}
		}
	}
	return sdk.Report{}, "timeout"
}

// socketError: an ICMP answer says that nobody is there any more.
func socketError(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "reset"
	}
	return "failed"
}
