# SPDX-License-Identifier: Apache-2.0
# Takes the C out of a document: awk -f documents.awk -v folder=WHERE -v document=docs/guide.md docs/guide.md
#
# A block between ```c and ``` is a whole program if it has a main(). Else it is a piece of one: what begins with static,
# typedef or # stands outside of functions, the rest inside of one. Comments directly before the block tell what it needs:
#
#   <!-- given: helio_model *model = a_model(); -->   C that stands before it; documents.h has what data and models it can use
#   <!-- then: helio_release(model); -->              C that stands behind it
#   <!-- on GPUs -->                                  it names a GPU: it runs on the test device that says it is one
#
# A block ```text behind it is what it prints; … stands for anything within a line.
# For each block, WHERE gets N.c, N.expected if its output is shown, and a line "N kind place:line" in WHERE/list.

function finish() { # the block that ended
  if (whole) {
    printf "%s", all >file
  } else {
    printf "#include \"documents.h\"\n%s\nstatic void piece(void) {\n%s\n%s\n%s\n}\n\n", outside, given, inside, after >file
    print "int main(void) {\n  piece();\n  return end_of_piece();\n}" >file
  }
  close(file)
  print number, (whole ? "program" : "piece") (gpus ? "-on-gpus" : ""), document ":" first >>(folder "/list")
  given = after = ""
  gpus = 0
}

function comment(text) { # what stands in it
  sub(/^<!-- [^:]*: */, "", text)
  sub(/ *-->$/, "", text)
  return text "\n"
}

# A line of a block goes where it belongs; the compiler is told where it came from when that changes.
function take(line, is_outside) {
  place = "#line " FNR " \"" document "\"\n"
  if (is_outside) {
    if (at != "outside") outside = outside place
    outside = outside line "\n"
    at = "outside"
  } else {
    if (at != "inside") inside = inside place
    inside = inside line "\n"
    at = "inside"
  }
}

BEGIN { number = begin + 0 }

!block && /^```c$/ {
  block = "c"
  number++
  file = folder "/" number ".c"
  all = "#line " (FNR + 1) " \"" document "\"\n"
  first = FNR + 1
  outside = inside = at = ""
  whole = definition = 0
  next
}
!block && /^```text$/ { block = "text"; expected = folder "/" number ".expected"; printf "" >expected; next }
!block && /^```/ { block = "other"; next }
block && /^```$/ {
  if (block == "c") finish()
  if (block == "text") close(expected)
  block = ""
  next
}

block == "c" {
  all = all $0 "\n"
  if (/^int main\(/) whole = 1
  if (!definition && /^(static|typedef|#)/) {
    definition = !/[;}]$/ && !/^#/ # one line, or as many as there are up to the brace
    take($0, 1)
  } else if (definition) {
    take($0, 1)
    if (/^}/) definition = 0
  } else {
    take($0, 0)
  }
}
block == "text" { print >expected }

!block && /^<!-- given: / { given = given comment($0) }
!block && /^<!-- then: / { after = after comment($0) }
!block && /^<!-- on GPUs/ { gpus = 1; if (/:/) given = given comment($0) }
!block && !/^<!--/ && NF { given = after = ""; gpus = 0 }

# C that is not between ```c and ``` would not be looked at.
!block && /^    .*(helio_[a-z0-9_]+\(.*;|HELIO_[A-Z]+.*\{)/ { print document ":" FNR ": C without ```c: " $0 >>(folder "/wrong") }

END { print number >(folder "/count") }
