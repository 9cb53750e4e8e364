// Package admin serves what operators and their tools ask a running process over
// HTTP: is it alive, is it ready, what is it doing, and its metrics.
package admin
