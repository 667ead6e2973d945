import Foundation
import Testing

/// Libraries that no program of ours wrote: each column of each table at its extremes, through all that can be done.
@Suite struct CraftedLibraryTests {
  private static let program: URL? = {
    let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    return own.map { URL(fileURLWithPath: $0).deletingLastPathComponent().appendingPathComponent("crafted-library") }
  }()

  /// Runs the fixture program, of which a trap or a hang ends the process.
  ///
  /// - Returns: the lines that it printed, and its signal, or 0.
  private func run(_ arguments: [String]) throws -> (lines: [Substring], signal: Int32) {
    let process = Process()
    process.executableURL = Self.program
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    var environment = ProcessInfo.processInfo.environment
    environment["SWIFT_BACKTRACE"] = "enable=no"
    process.environment = environment
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (
      text.split(separator: "\n"), process.terminationReason == .uncaughtSignal ? process.terminationStatus : 0
    )
  }

  /// All would take minutes: `SHEAF_CRAFTED=1` goes through all. Of some, others are tried each time; the number of a
  /// case that fails leads to it again (`crafted-library run TEMPLATE FOLDER NUMBER 1`).
  private static let step = ProcessInfo.processInfo.environment["SHEAF_CRAFTED"].flatMap(Int.init) ?? 17

  @Test func nothingThatALibraryHoldsEndsOrHangsTheProcess() throws {
    try withLibraryFolder { folder in
      let template = folder + "/template.sqlite"
      #expect(try run(["make", template]).signal == 0)
      var next = Int.random(in: 0..<Self.step)
      var findings = 0
      while findings < 20 {
        let (lines, signal) = try run(["run", template, folder, "\(next)", "\(Self.step)"])
        let cases = lines.filter { $0.hasPrefix("case ") }
        for (index, line) in lines.enumerated() where line.hasPrefix("error ") {
          let about = lines[..<index].last { $0.hasPrefix("case ") } ?? ""
          Issue.record("\(about): no error of Sheaf: \(line)")
          findings += 1
        }
        if lines.last == "end" { break }
        let last = try #require(cases.last)
        Issue.record("\(last): signal \(signal) after \(lines.last ?? "")")
        findings += 1
        next = (Int(last.split(separator: " ")[1]) ?? .max - Self.step) + Self.step
      }
    }
  }
}
