package kafka_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/services"
)

// child is a server in a process of its own.
type child struct {
	t    *testing.T
	dir  string
	addr string
	peer string // where other nodes reach it; empty: it is alone
	join string // a node of the cluster that it joins

	seeds []string // of its clients; itself if there are none
	cmd   *exec.Cmd
	says  *strings.Builder // its standard error; read after it has ended
}

func newChild(t *testing.T) *child {
	t.Helper()
	c := &child{t: t, dir: t.TempDir(), addr: services.AddressForTest(t)}
	c.start()
	c.cleanUp()
	return c
}

func (c *child) cleanUp() {
	t := c.t
	t.Cleanup(func() {
		if t.Failed() { // what does it do?
			_ = c.cmd.Process.Signal(syscall.SIGQUIT)
			_ = c.cmd.Wait()
			t.Logf("the server's goroutines:\n%s", c.says.String())
			return
		}
		c.kill()
	})
}

// start returns once the server listens.
func (c *child) start() {
	c.t.Helper()
	if err := c.tryStart(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) tryStart() error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+c.dir, childAddr+"="+c.addr, childPeer+"="+c.peer, childJoin+"="+c.join)
	c.says = &strings.Builder{}
	cmd.Stderr = c.says
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "serving\n" {
		_ = cmd.Wait()
		return fmt.Errorf("the server did not start: %q, %w\n%s", line, err, c.says.String())
	}
	c.cmd = cmd
	return nil
}

// kill ends the server without a warning.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	if strings.Contains(c.says.String(), "WARNING: DATA RACE") { // one that is restarted tells by its exit code
		c.t.Errorf("the server has a data race:\n%s", c.says)
	}
}

// restart ends the server as an operator does, and starts it again.
func (c *child) restart() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("the server's end: %w\n%s", err, c.says.String())
	}
	return c.tryStart()
}

func (c *child) seedAddresses() []string {
	if len(c.seeds) == 0 {
		return []string{c.addr}
	}
	return c.seeds
}

func (c *child) client(opts ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.seedAddresses()...), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(20 * time.Millisecond), kgo.RequestRetries(1000),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}, opts...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}
