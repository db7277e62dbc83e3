// Package text formats output for people: shell words, byte sizes, numbers and
// durations, and untrusted strings, which it makes safe for a terminal and for
// messages. It imports no other package of leakgate, which allows every package
// to use it.
package text
