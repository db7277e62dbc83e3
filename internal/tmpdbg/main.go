package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

func main() {
	re := regexp.MustCompile(os.Args[1])
	n, _ := strconv.Atoi(os.Args[2])
	want := ""
	if len(os.Args) > 3 {
		want = os.Args[3]
	}
	list := scenario.Nights()
	for _, n := range append(scenario.Null(8), scenario.Shapes(8)...) {
		list = append(list, scenario.Night{Name: n.Name, Draw: func(*rand.Rand) scenario.Scenario { return n }, Watched: scenario.Conditions{Processes: 3, Diagnosis: 120e9}})
	}
	for _, x := range list {
		if !re.MatchString(x.Name) {
			continue
		}
		fmt.Println("##", x.Name)
		for seed := range uint64(n) {
			r := rand.New(rand.NewPCG(seed, 5))
			s := x.Draw(r)
			p := s.Make(r)
			d := detector.New(detector.RobustPolicy())
			scenario.Play(p, d, x.Watched, r.Float64)
			v := d.Verdict()
			if want == "" || string(v.Gate) == want {
				fmt.Printf("%3d %-12s %v | %s\n", seed, v.Gate, v.Kind, v.Because)
			}
		}
	}
}
