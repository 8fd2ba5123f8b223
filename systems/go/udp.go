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

// HELLO and END are repeated after this time.
const repeat = 50 * time.Millisecond

// serveDatagrams reads one socket in one goroutine until SIGTERM.
func serveDatagrams(spec *sdk.Spec) (*sdk.Done, error) {
	datagram, err := sdk.NewDatagram(spec)
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
	terminated := sdk.Terminated()
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, err
	}
	sdk.Ready(socket.LocalAddr().String())
	go receive(socket, sdk.NewReceiver(datagram))
	<-terminated
	return nil, nil
}

func receive(socket *net.UDPConn, receiver *sdk.Receiver) {
	buffer := make([]byte, sdk.LargestDatagram+1)
	for {
		n, from, err := socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		if answer := receiver.Answer(from, buffer[:n]); answer != nil {
			// A client that has gone needs no answer.
			_, _ = socket.WriteToUDPAddrPort(answer, from)
		}
	}
}

// streamDatagrams is the client: a socket and a goroutine for each flow.
func streamDatagrams(spec *sdk.Spec) (*sdk.Done, error) {
	datagram, err := sdk.NewDatagram(spec)
	if err != nil {
		return nil, err
	}
	stop, err := sdk.NewStopCondition(spec)
	if err != nil {
		return nil, err
	}
	t := &task{spec: spec}
	sockets, failures := make([]net.Conn, spec.Connections), make([]string, spec.Connections)
	for i := range sockets {
		sockets[i], failures[i] = t.hello()
	}
	window := t.openWindow()
	stop.Start(window)
	tallies := t.each(func(i int, tally *sdk.Tally) {
		if failures[i] != "" {
			tally.Fail(failures[i])
			return
		}
		defer sockets[i].Close()
		began := sdk.Now()
		sent, kind := send(sockets[i], append([]byte{}, datagram...), stop)
		stopped := sdk.Now()
		report, unreported := control(sockets[i], sdk.Control(sdk.DatagramEnd, sent), sdk.DatagramReport, spec.Timeout())
		if unreported == "" && !report.IsPossible(sent, uint64(spec.Size), sdk.Now()-began) {
			report, unreported = sdk.Report{}, "malformed"
		}
		tally.Flowed(sent, stopped, report, spec.Size)
		if kind == "" {
			kind = unreported
		}
		if kind != "" {
			tally.Fail(kind)
		}
	})
	return window.Close(tallies), nil
}

func send(socket net.Conn, datagram []byte, stop sdk.StopCondition) (sent uint64, kind string) {
	for at := uint64(0); !stop.Reached(at); at += uint64(len(datagram)) {
		copy(datagram, sdk.Control(sent))
		if _, err := socket.Write(datagram); err != nil {
			return sent, socketError(err)
		}
		sent++
	}
	return sent, ""
}

// hello opens a flow's socket, and exchanges HELLO with the server.
func (t *task) hello() (net.Conn, string) {
	socket, err := t.dial("udp")
	if err != nil {
		return nil, sdk.ConnectError(err)
	}
	switch _, kind := control(socket, sdk.Control(sdk.DatagramHello, 0), sdk.DatagramWelcome, t.spec.Timeout()); kind {
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

// control repeats a control datagram until an answer of the wanted kind. It returns the report, if it is one, or the kind of failure.
func control(socket net.Conn, datagram []byte, wanted uint64, timeout time.Duration) (sdk.Report, string) {
	buffer := make([]byte, sdk.LargestDatagram)
	for end := time.Now().Add(timeout); time.Now().Before(end); {
		if _, err := socket.Write(datagram); err != nil {
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

// socketError returns the kind of an error: an ICMP answer means that the server has gone.
func socketError(err error) string {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "reset"
	}
	return "failed"
}
