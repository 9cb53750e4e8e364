// Package shop is a small shop on real servers: a MySQL with orders, an nginx with
// pages, an app that posts events. It makes the traffic, writes the pipeline file, runs
// the binary as a user would, and compares what came out with what went in. The
// demo, the examples and the crash tests share it.
package shop
