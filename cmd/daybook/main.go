// Command daybook moves changes and events: from databases, logs and apps into a
// journal, and from the journal to search engines, caches and files.
//
// Each verb has a file of its own here; the parts are put together by
// internal/node.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/node"
)

// version is set by the linker (see the Makefile).
var version = "development"

// Exit codes, the same for every verb.
const (
	exitOK          = 0
	exitFailed      = 1 // it ran, and something failed
	exitConfig      = 2 // a file or the command line is not right
	exitEnvironment = 3 // something it needs can't be reached
)

func main() {
	ctx, stop := untilStopped()
	logging.Disable()            // go-redis prints redials to stderr by itself; our sink tells of them
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, which is safe too
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// untilStopped ends with the first signal that asks to stop: a hang-up, too, which has no files to be read again for, unless
// it was ignored from the start (nohup).
func untilStopped() (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), signals...)
}

// run is main without the process: what tests call.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := &cli{stdout: stdout, stderr: stderr}
	root := c.root()
	root.SetArgs(args)
	verb, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case !c.started:
		fmt.Fprintf(stderr, "daybook: %v (see %s --help)\n", err, verb.CommandPath())
		return exitConfig
	}
	fmt.Fprintln(stderr, "daybook:", err)
	return exitCode(err)
}

func exitCode(err error) int {
	var problems configs.Problems
	switch {
	case errors.As(err, &problems), errors.Is(err, node.ErrConfig):
		return exitConfig
	case errors.Is(err, node.ErrEnvironment):
		return exitEnvironment
	}
	return exitFailed
}

// cli is what the verbs share.
type cli struct {
	stdout, stderr io.Writer
	level          string
	logJSON        bool
	// started says that a verb began: an error before that is of the command line.
	started bool
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "daybook",
		Short: "One journal for changes and events: capture, keep, replay, deliver",
		Long: `Daybook reads changes from databases, log files and apps into a strictly ordered
journal, and delivers them from there to search engines, caches and files: live, or
again from any position or time.

Exit codes: 0 ok, 1 failed at run time, 2 bad configuration, 3 environment not reachable.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	hasVerbs(root)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.PersistentFlags().StringVar(&c.level, "log-level", "info", "debug, info, warn or error")
	root.PersistentFlags().BoolVar(&c.logJSON, "log-json", false, "log lines as JSON")
	root.AddCommand(c.runCommand(), c.serverCommand(), c.validateCommand(), c.replayCommand(),
		c.tailCommand(), c.streamsCommand(), c.statusCommand(), c.journalCommand(), c.getCommand(), c.clusterCommand(), c.benchCommand())
	c.markStart(root)
	return root
}

// hasVerbs makes a command that only has verbs refuse what is none of them, and print its help where none is given.
// Cobra would print the help for both.
func hasVerbs(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		near := cmd.SuggestionsFor(args[0])
		if len(near) == 0 {
			for _, verb := range cmd.Commands() {
				if verb.IsAvailableCommand() {
					near = append(near, verb.Name())
				}
			}
		}
		return fmt.Errorf("unknown command %q for %q: did you mean %s?", args[0], cmd.CommandPath(), strings.Join(near, ", "))
	}
}

// markStart makes every verb below cmd note that it began, and say what it takes where it is given something else.
func (c *cli) markStart(cmd *cobra.Command) {
	if takes := cmd.Args; takes != nil && !cmd.HasSubCommands() {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			wrong := "too many arguments"
			switch {
			case takes(cmd, args) == nil:
				return nil
			case len(args) == 0:
				wrong = "an argument is missing"
			}
			return fmt.Errorf("%s: %s", wrong, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
	}
	if verb := cmd.RunE; verb != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.started = true
			return verb(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		c.markStart(sub)
	}
}

// logger returns the process's only logger; it writes to stderr.
func (c *cli) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.level)); err != nil {
		return nil, fmt.Errorf("%w: --log-level %q: want debug, info, warn or error", node.ErrConfig, c.level)
	}
	options := &slog.HandlerOptions{Level: level}
	if c.logJSON {
		return slog.New(slog.NewJSONHandler(c.stderr, options)), nil
	}
	return slog.New(slog.NewTextHandler(c.stderr, options)), nil
}
