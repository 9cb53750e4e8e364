//go:build linux

package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/jepsen/lab"
)

// patience is for what takes milliseconds on an idle machine.
const patience = 30 * time.Second

func open(t *testing.T, machines int) *lab.Lab {
	t.Helper()
	l, err := lab.New(lab.Options{Machines: machines, Seed: 1, DiskBytes: 256 << 20, Logs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("closing the lab: %v", err)
		}
	})
	return l
}

// TestMain lets the test's own binary be the process on a machine: an echo server, or one that tells the time.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "echo" {
		echo(os.Args[2])
	}
	if len(os.Args) == 3 && os.Args[1] == "time" {
		tellTime(os.Args[2])
	}
	os.Exit(m.Run())
}

func echo(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}()
	}
}

// times is what a process takes for now.
type times struct {
	Day    time.Time     // its time of day
	Passed time.Duration // since it started, by its monotonic clock
}

// tellTime answers each connection with the process's times.
func tellTime(address string) {
	began := time.Now()
	l, err := net.Listen("tcp", address)
	if err != nil {
		os.Exit(1)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		_ = json.NewEncoder(c).Encode(times{time.Now(), time.Since(began)}) // who does not get it asks again
		_ = c.Close()
	}
}

// echoOn starts the echo server on a machine and returns a way to ask it.
func echoOn(t *testing.T, l *lab.Lab, machine int) (*lab.Process, func(within time.Duration) error) {
	t.Helper()
	address := l.Machine(machine).Address().String() + ":7"
	p, err := l.Machine(machine).Start(os.Args[0], "echo", address)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		c, err := l.Dial(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(within))
		if _, err := io.WriteString(c, "hello"); err != nil {
			return err
		}
		_, err = io.ReadFull(c, make([]byte, 5))
		return err
	}
	eventually(t, "the echo server answers", func() error { return ask(time.Second) })
	return p, ask
}

func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestLinksGoDownInOneDirection(t *testing.T) {
	t.Parallel()
	l := open(t, 2)
	_, first := echoOn(t, l, 1)
	_, second := echoOn(t, l, 2)
	l.Network.Set(1, 0, lab.Quality{Down: true})
	if err := first(500 * time.Millisecond); err == nil {
		t.Error("machine 1 answers clients although its packets to them are dropped")
	}
	eventually(t, "machine 2 is not concerned", func() error { return second(time.Second) })
	l.Network.Heal()
	eventually(t, "machine 1 is back", func() error { return first(time.Second) })
	if _, lost := l.Network.Carried(); lost == 0 {
		t.Error("the network counts no lost packet")
	}
}

func TestBadLinksAreSlowAndStillRight(t *testing.T) {
	t.Parallel()
	l := open(t, 1)
	address := l.Machine(1).Address().String() + ":7"
	_, _ = echoOn(t, l, 1)
	bad := lab.Quality{Loss: 0.05, Double: 0.1, Reorder: 0.1, Delay: 5 * time.Millisecond, Jitter: 5 * time.Millisecond}
	l.Network.Each(func(int, int) lab.Quality { return bad })
	c, err := l.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	sent := strings.Repeat("0123456789abcdef", 1<<14)
	go func() { _, _ = io.WriteString(c, sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	if string(got) != sent {
		t.Error("TCP brought back other bytes than were sent")
	}
}

func TestPausedProcessesAnswerLater(t *testing.T) {
	t.Parallel()
	l := open(t, 1)
	p, ask := echoOn(t, l, 1)
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := ask(300 * time.Millisecond); err == nil {
		t.Error("a paused process answers")
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process goes on", func() error { return ask(time.Second) })
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if p.Ended() == nil {
		t.Error("a killed process has not ended")
	}
}

func TestPowerCutLosesWhatWasNotSynced(t *testing.T) {
	t.Parallel()
	l := open(t, 1)
	m := l.Machine(1)
	run(t, m, "echo synced > synced && sync synced . && echo lost > lost && echo more >> synced")
	if got := run(t, m, "cat synced lost"); got != "synced\nmore\nlost" {
		t.Fatalf("before the power cut the disk holds %q", got)
	}
	const bootID = "cat /proc/sys/kernel/random/boot_id"
	boot := run(t, m, bootID)
	if again := run(t, m, bootID); again != boot {
		t.Errorf("without a power cut the machine's boot is called %q and then %q", boot, again)
	}
	if err := m.Disk.PowerCut(); err != nil {
		t.Fatal(err)
	}
	if again := run(t, m, bootID); again == boot {
		t.Errorf("after the power cut the machine's boot is called %q as before", boot)
	}
	if got := run(t, m, "cat synced; ls"); got != "synced\nlost+found\nsynced" {
		t.Errorf("a power cut left %q", got)
	}
	if data, err := fs.ReadFile(m.FS(), strings.TrimPrefix(m.Disk.Folder(), "/")+"/synced"); err != nil || string(data) != "synced\n" {
		t.Errorf("seen from outside the file holds %q: %v", data, err)
	}
}

func run(t *testing.T, m *lab.Machine, script string) string {
	t.Helper()
	out, err := m.Output(t.Context(), "sh", "-c", "cd "+m.Disk.Folder()+" && "+script)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestDisksFillFreezeAndDie(t *testing.T) {
	t.Parallel()
	l := open(t, 2)
	m := l.Machine(1)
	const write = "dd if=/dev/zero of=f bs=64K count=32 conv=fsync 2>&1"
	if err := m.Disk.Fill(1 << 20); err != nil {
		t.Fatal(err)
	}
	if out, err := m.Output(t.Context(), "sh", "-c", "cd "+m.Disk.Folder()+" && "+write); err == nil || !strings.Contains(string(out), "No space left") {
		t.Errorf("writing 2 MiB where 1 MiB is left: %v\n%s", err, out)
	}
	if err := m.Disk.Free(); err != nil {
		t.Fatal(err)
	}
	run(t, m, write)

	if err := m.Disk.Freeze(); err != nil {
		t.Fatal(err)
	}
	p, err := m.Start("sh", "-c", "cd "+m.Disk.Folder()+" && "+write)
	if err != nil {
		t.Fatal(err)
	}
	run(t, l.Machine(2), write) // that of another machine is not frozen
	if err := p.Ended(); err != nil {
		t.Errorf("a write to a frozen disk does not wait: %v", err)
	}
	if err := m.Disk.Thaw(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatal("the write does not go on once the disk is thawed")
	}

	if err := m.Disk.Die(); err != nil {
		t.Fatal(err)
	}
	if out, err := m.Output(t.Context(), "sh", "-c", "cd "+m.Disk.Folder()+" && "+write); err == nil {
		t.Errorf("writing to a dead disk works\n%s", out)
	}
	if err := m.Disk.PowerCut(); err != nil {
		t.Fatal(err)
	}
	run(t, m, write)
}

// TestNothingOutlivesTheProcess kills a process that has a lab, with a frozen disk and a running server, and looks for
// what it leaves.
func TestNothingOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv("LAB_VICTIM") != "" {
		victim(t)
	}
	before := mounts(t)
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestNothingOutlivesTheProcess$")
	cmd.Env = append(os.Environ(), "LAB_VICTIM="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var server, writer int
	if _, err := fmt.Fscanf(out, "%d %d\n", &server, &writer); err != nil {
		t.Fatalf("the victim says nothing: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for _, pid := range []int{server, writer} {
		eventually(t, fmt.Sprintf("process %d ends", pid), func() error {
			if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
				return nil
			}
			return errors.New("it runs")
		})
	}
	if after := mounts(t); after != before {
		t.Errorf("mounts before and after differ:\n%s\n%s", before, after)
	}
}

// victim waits to be killed.
func victim(t *testing.T) {
	l, err := lab.New(lab.Options{Machines: 2, Logs: os.Getenv("LAB_VICTIM")})
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Machine(1).Start(os.Args[0], "echo", ":7")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Machine(2).Disk.Freeze(); err != nil {
		t.Fatal(err)
	}
	writer, err := l.Machine(2).Start("touch", filepath.Join(l.Machine(2).Disk.Folder(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(server.PID(), writer.PID())
	select {}
}

func mounts(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
