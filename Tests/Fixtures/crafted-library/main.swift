import Foundation
import Glibc
import SheafLibrary
import SheafModel

// Does everything with libraries of which one value is not what any program of ours writes:
// `crafted-library make TEMPLATE` makes a library with a row in each table;
// `crafted-library run TEMPLATE FOLDER FIRST STEP` goes through each STEPth case from number FIRST on, in FOLDER. Each
// line that it prints is the number and name of a case, or an action; a trap or a hang ends the process after the line
// that is to blame.

/// Seconds of a case, past which SIGALRM ends the process.
let patience: UInt32 = 60

func say(_ line: String) {
  var text = line + "\n"
  text.withUTF8 { _ = write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}

let arguments = CommandLine.arguments
switch (arguments.dropFirst().first, arguments.count) {
case ("make", 3): try Template.make(at: arguments[2])
case ("run", 6):
  let template = arguments[2]
  let path = arguments[3] + "/library.sqlite"
  let (first, step) = (Int(arguments[4]) ?? 0, Int(arguments[5]) ?? 1)
  let cases = try Crafted.all(of: template)
  for number in stride(from: first, to: cases.count, by: step) {
    let crafted = cases[number]
    say("case \(number) \(crafted.name)")
    alarm(patience)
    for suffix in ["", "-wal", "-shm", "-changes", "-working", "-reserve", "-lock", "-backup"] { unlink(path + suffix) }
    try FileManager.default.copyItem(atPath: template, toPath: path)
    guard try crafted.apply(to: path) else { continue }
    Actions(path: path).all()
  }
  say("end")
default:
  print("usage: crafted-library make TEMPLATE | run TEMPLATE FOLDER FIRST STEP")
  exit(64)
}
