package config

import "strings"

// longestWord is the maximum length of a word that [Nearest] considers. Keys,
// verbs and flags are shorter, and the run time grows with the square of the
// length.
const longestWord = 64

// Nearest returns the candidate that was probably meant by a mistyped word: the
// one with the smallest Damerau-Levenshtein distance, ignoring case. The
// distance may be up to 2 or, for a longer word, up to a third of its length.
// It is never more than half the length of the longer of the two words, because
// otherwise every word would resemble a word of two letters. If several
// candidates have the same distance, the first one is returned.
func Nearest(word string, candidates []string) (string, bool) {
	w := []rune(strings.ToLower(word))
	if len(w) == 0 || len(w) > longestWord {
		return "", false
	}
	best, found := "", false
	limit := max(2, len(w)/3)
	for _, candidate := range candidates {
		c := []rune(strings.ToLower(candidate))
		if len(c) > longestWord {
			continue
		}
		if d := distance(w, c); d <= limit && 2*d <= max(len(w), len(c)) {
			best, found, limit = candidate, true, d-1
		}
	}
	return best, found
}

// distance counts the insertions, deletions, substitutions and swaps of two
// adjacent letters that turn a into b: the unrestricted Damerau-Levenshtein
// distance, in which a swapped pair may be edited again (R. Lowrance, R. A.
// Wagner: An Extension of the String-to-String Correction Problem, JACM 22(2),
// 1975).
func distance(a, b []rune) int {
	// d[i+1][j+1] is the distance between a[:i] and b[:j]; row and column 0 are
	// a barrier that paths do not cross.
	wall := len(a) + len(b)
	d := make([][]int, len(a)+2)
	for i := range d {
		d[i] = make([]int, len(b)+2)
		d[i][0] = wall
		if i > 0 {
			d[i][1] = i - 1
		}
	}
	for j := range d[0] {
		d[0][j] = wall
		if j > 0 {
			d[1][j] = j - 1
		}
	}
	lastRow := map[rune]int{} // the last row in which a had this letter
	for i := 1; i <= len(a); i++ {
		lastColumn := 0 // the last column of this row with the same letter
		for j := 1; j <= len(b); j++ {
			k, l := lastRow[b[j-1]], lastColumn
			substitute := 1
			if a[i-1] == b[j-1] {
				substitute, lastColumn = 0, j
			}
			d[i+1][j+1] = min(
				d[i][j]+substitute,
				d[i+1][j]+1,
				d[i][j+1]+1,
				d[k][l]+(i-k-1)+1+(j-l-1),
			)
		}
		lastRow[a[i-1]] = i
	}
	return d[len(a)+1][len(b)+1]
}
