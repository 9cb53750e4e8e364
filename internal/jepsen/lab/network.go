//go:build linux

package lab

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
)

// Network is the switch between the machines. Number 0 is the clients'. Safe for concurrent use.
type Network struct {
	seed uint64

	mu    sync.RWMutex // guards ports and links, not what a link holds
	ports map[int]*os.File
	links map[[2]int]*link // by sender and receiver
	wait  sync.WaitGroup
}

func newNetwork(seed uint64) *Network {
	return &Network{seed: seed, ports: map[int]*os.File{}, links: map[[2]int]*link{}}
}

// plug connects a machine's device with all others.
func (n *Network) plug(port int, tun *os.File) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other, device := range n.ports {
		n.connect(port, other, device)
		n.connect(other, port, tun)
	}
	n.ports[port] = tun
	n.wait.Go(func() { n.receive(port, tun) })
}

// connect makes one direction of a link. The caller holds mu.
func (n *Network) connect(from, to int, device *os.File) {
	l := newLink(device, rand.New(rand.NewPCG(n.seed, uint64(from)<<8|uint64(to))))
	n.links[[2]int{from, to}] = l
	n.wait.Go(l.deliverLate)
}

// receive passes a machine's packets on until its device is closed.
func (n *Network) receive(from int, tun *os.File) {
	buf := make([]byte, mtu+64)
	for {
		size, err := tun.Read(buf)
		if err != nil {
			return
		}
		if packet := buf[:size]; size >= 20 && packet[0]>>4 == 4 { // IPv4; the rest is a machine that looks for routers
			to := int(packet[19]) - 1
			n.mu.RLock()
			l := n.links[[2]int{from, to}]
			n.mu.RUnlock()
			if l != nil {
				l.send(packet)
			}
		}
	}
}

// Set gives one direction of a link its quality. Machines that are not there panic.
func (n *Network) Set(from, to int, q Quality) {
	n.mu.RLock()
	l := n.links[[2]int{from, to}]
	n.mu.RUnlock()
	if l == nil {
		panic(fmt.Sprintf("lab: no link from %d to %d", from, to))
	}
	l.set(q)
}

// Each gives every direction of every link the quality that f says.
func (n *Network) Each(f func(from, to int) Quality) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for ends, l := range n.links {
		l.set(f(ends[0], ends[1]))
	}
}

// Heal makes all links perfect.
func (n *Network) Heal() { n.Each(func(int, int) Quality { return Quality{} }) }

// Carried returns how many packets arrived, and how many were lost on purpose or because too many waited.
func (n *Network) Carried() (arrived, lost int64) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, l := range n.links {
		arrived += l.arrived.Load()
		lost += l.lost.Load()
	}
	return arrived, lost
}

func (n *Network) close() {
	n.mu.Lock()
	for _, p := range n.ports {
		_ = p.Close()
	}
	for _, l := range n.links {
		l.close()
	}
	n.mu.Unlock()
	n.wait.Wait()
}
