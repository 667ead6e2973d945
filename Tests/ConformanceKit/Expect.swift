import Glibc

/// A fault that a case found.
public struct Deviation: Error, CustomStringConvertible {
  public let description: String

  init(_ description: String, _ file: StaticString, _ line: UInt) {
    let name = String(describing: file).split(separator: "/").last ?? ""
    self.description = "\(description) (\(name):\(line))"
  }
}

func expect(
  _ condition: Bool, _ message: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
) throws {
  guard condition else { throw Deviation(message(), file, line) }
}

func expect<Value: Equatable>(
  _ actual: Value, is expected: Value, _ what: @autoclosure () -> String, file: StaticString = #fileID,
  line: UInt = #line
) throws {
  guard actual != expected else { return }
  throw Deviation("\(what()) is \(brief(actual)), expected \(brief(expected))", file, line)
}

/// Expects `body` to fail with one of `codes`.
func expect<Value>(
  _ codes: Int32..., file: StaticString = #fileID, line: UInt = #line, _ body: () throws -> Value
) throws {
  let wanted = codes.map(Errno.name).joined(separator: " or ")
  do {
    _ = try body()
  } catch let failure as Errno {
    guard codes.contains(failure.code) else { throw Deviation("\(failure), expected \(wanted)", file, line) }
    return
  }
  throw Deviation("the call succeeded, expected \(wanted)", file, line)
}

/// A value for a message; long ones are cut.
private func brief(_ value: Any) -> String {
  let text = String(describing: value)
  return text.count <= 200 ? text : "\(text.prefix(180))… (\(text.count) characters)"
}
