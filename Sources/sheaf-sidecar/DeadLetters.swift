import ArgumentParser
import Foundation
import SheafModel
import SheafSidecar

struct DeadLetters: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the events that were given up, or have them sent again.",
    discussion: """
      An event is given up when its endpoint has failed for three days. --retry has the running sidecar, or the next one, \
      make one more attempt at each; what arrives leaves the list.
      """)

  @Flag(help: "Send them once more.")
  var retry = false

  @Flag(help: "Print JSON.")
  var json = false

  @OptionGroup var files: FileOptions

  func run() throws {
    let path = try files.stateOfSidecar()
    let store = try SidecarState(path: path)
    if retry {
      let count = try store.retryDeadLetters()
      let now = SidecarProcess.poke(path) ? "now" : "when the sidecar starts"
      return print(count == 0 ? "No dead letters." : "\(count) to be sent once more \(now).")
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    var count = 0
    // One at a time: memory may not hold all of them.
    try store.eachDeadLetter { letter in
      if json {
        print(count == 0 ? "[" : ",", terminator: "\n")
        print(String(decoding: try encoder.encode(letter), as: UTF8.self), terminator: "")
      } else {
        print(
          "\(letter.time.secondsText)  \(letter.sink.printable)  event \(letter.sequence)  \(letter.reason.printable)")
      }
      count += 1
    }
    if json { print(count == 0 ? "[]" : "\n]") } else if count == 0 { print("No dead letters.") }
  }
}
