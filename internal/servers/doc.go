// Package servers runs `daybook server` processes as one cluster on this machine, for tests and measurements: they are
// killed, paused and started again, and found at the same addresses.
package servers
