// Package node puts the parts together: it opens a journal, embedded or remote,
// runs pipelines, servers and replays on it, and closes all of it in order. It is
// the only place where things are wired; each verb of the command line is one
// function here.
package node
