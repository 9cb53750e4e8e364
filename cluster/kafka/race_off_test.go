//go:build !race

package kafka_test

const shadow = 1
