// Package text writes what people read: untrusted text made safe for a terminal
// and for messages, shell words, byte sizes, numbers and spans of time. It knows
// nothing of leakgate and imports nothing of it, so that every package may use it.
package text
