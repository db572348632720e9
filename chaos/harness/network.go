package harness

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Network is a TCP connection between two parties that can be cut: a proxy on loopback.
type Network struct {
	Address string

	target string
	mu     sync.Mutex
	state  networkState
	thaw   chan struct{} // closed when a blackout ends
	conns  map[net.Conn]bool
}

type networkState int

const (
	connected networkState = iota
	blackout               // bytes vanish, nobody is told
	cut                    // connections are closed and refused at once
)

// NewNetwork returns a way to target that ends with the test.
func NewNetwork(t testing.TB, target string) *Network {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &Network{Address: listener.Addr().String(), target: target, thaw: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(n.thaw)
	t.Cleanup(func() {
		listener.Close()
		n.Cut()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go n.serve(conn)
		}
	}()
	return n
}

// Blackout lets every byte wait, and tells nobody, until Mend.
func (n *Network) Blackout() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state != blackout {
		n.state, n.thaw = blackout, make(chan struct{})
	}
}

// Cut closes all connections, and every new one, until Mend.
func (n *Network) Cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leaveBlackout()
	n.state = cut
	for conn := range n.conns {
		conn.Close()
	}
}

// Mend undoes Blackout and Cut.
func (n *Network) Mend() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leaveBlackout()
	n.state = connected
}

func (n *Network) leaveBlackout() {
	if n.state == blackout {
		close(n.thaw)
	}
}

func (n *Network) serve(conn net.Conn) {
	defer conn.Close()
	if !n.keep(conn) {
		return
	}
	defer n.forget(conn)
	<-n.open()
	target, err := net.Dial("tcp", n.target)
	if err != nil {
		return
	}
	defer target.Close()
	if !n.keep(target) {
		return
	}
	defer n.forget(target)
	done := make(chan struct{}, 2)
	go n.carry(target, conn, done)
	go n.carry(conn, target, done)
	<-done
}

func (n *Network) carry(to io.Writer, from io.Reader, done chan<- struct{}) {
	defer func() { done <- struct{}{} }()
	buf := make([]byte, 32<<10)
	for {
		size, err := from.Read(buf)
		if err != nil {
			return
		}
		<-n.open()
		if _, err := to.Write(buf[:size]); err != nil {
			return
		}
	}
}

// open returns what is closed while bytes may pass.
func (n *Network) open() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.thaw
}

// keep remembers a connection, and refuses it while the network is cut.
func (n *Network) keep(conn net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == cut {
		return false
	}
	n.conns[conn] = true
	return true
}

func (n *Network) forget(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, conn)
}
