import Foundation
package import SheafModel
import TOMLKit

/// The configuration as a TOML file; `examples/sidecar.toml` explains it.
///
/// Parse errors are TOMLKit's own. Its `TOMLDecoder` is not used: it reports a value of the wrong type as a missing
/// key, accepts no whole number for a `Double`, and names no line.
package enum ConfigurationFile {
  /// - Throws: ``SheafError`` that names file, line, sink and key.
  package static func read(_ path: String) throws(SheafError) -> SidecarConfiguration {
    let text = try Self.text(of: path, subject: path.printable)
    return try parse(text, named: path, folder: URL(fileURLWithPath: path).deletingLastPathComponent())
  }

  /// A file's text. The error tells whether the file is missing, cannot be read, or is no text.
  private static func text(
    of path: String, subject: String, reason: (String) -> String = { $0 }, advice: String? = nil
  ) throws(SheafError) -> String {
    let bytes: Data
    do {
      bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    } catch {
      switch (error as? CocoaError)?.code {
      case .fileReadNoSuchFile:
        throw SheafError(.notFound, subject: subject, reason: reason("there is no such file"), advice: advice)
      case .fileReadNoPermission:
        throw SheafError(.accessDenied, subject: subject, reason: reason("may not be read"), advice: advice)
      default: throw SheafError(.inputOutput, subject: subject, reason: reason("cannot be read"), advice: advice)
      }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw SheafError(.invalid, subject: subject, reason: reason("is not UTF-8"), advice: advice)
    }
    return text
  }

  /// - Parameter folder: The folder that paths in the file are relative to.
  static func parse(_ text: String, named name: String, folder: URL) throws(SheafError) -> SidecarConfiguration {
    // TOML 1.0 allows none of these anywhere, and the parser ends the process on some.
    var line = 1
    for byte in text.utf8 {
      if byte == UInt8(ascii: "\n") { line += 1 }
      guard byte < 0x20 && byte != 0x09 && byte != 0x0A && byte != 0x0D || byte == 0x7F else { continue }
      throw SheafError(
        .invalid, subject: "\(name.printable) line \(line)",
        reason: "is no TOML: it has the control character \(byte)", advice: "remove it")
    }
    let table: [String: Value]
    do {
      // As JSON it is a plain value: the parser's own tables refer to each other by unguarded pointers.
      let json = try TOMLTable(string: text).convert(to: .json)
      table = try JSONDecoder().decode([String: Value].self, from: Data(json.utf8))
    } catch let error as TOMLParseError {
      throw SheafError(
        .invalid, subject: "\(name.printable) line \(error.source.begin.line)",
        reason: "is no TOML: \(error.description)"
      )
    } catch {
      throw SheafError(.invalid, subject: name.printable, reason: "is no TOML")
    }
    let file = Section(table: table, place: .init(file: name.printable, keys: KeyLines(text)), folder: folder)
    var configuration = SidecarConfiguration()
    configuration.library = try file.path("library")
    configuration.isOfHub = try file.flag("hub") ?? false
    configuration.device = try file.path("device")
    configuration.state = try file.path("state")
    configuration.servesAccounts = try file.flag("account-webhooks") ?? false
    try file.refuseOthers(["library", "hub", "device", "state", "account-webhooks", "sink"])
    for section in try file.sections("sink") {
      let sink = try self.sink(section)
      if configuration.sinks.contains(where: { $0.name == sink.name }) {
        throw SidecarConfiguration.twice(section.place.text("name"))
      }
      if let problem = sink.problem {
        throw SheafError(
          .invalid, subject: section.place.text(problem.key), reason: problem.reason, advice: problem.advice)
      }
      configuration.sinks.append(sink)
    }
    return configuration
  }

  private static func sink(_ section: Section) throws(SheafError) -> SinkConfiguration {
    let all = ["webhook", "stdout", "desktop", "exec"]
    let kinds = all.filter(section.has)
    let common = [
      "name", "types", "documents", "account", "batch", "timeout", "retry-base", "retry-cap", "retry-for", "from",
    ]
    let own = kinds == ["webhook"] ? ["secrets", "secret-file"] : []
    try section.refuseOthers((kinds.isEmpty ? all : kinds) + own + common)
    guard kinds.count == 1 else {
      throw SheafError(
        .invalid, subject: section.place.text(kinds.last),
        reason: kinds.isEmpty ? "says not where to" : "is a second target",
        advice: "give exactly one of webhook, stdout, desktop, exec")
    }
    let target: SinkConfiguration.Target
    switch kinds[0] {
    case "webhook": target = .webhook(url: try section.text("webhook") ?? "", secrets: try secrets(section))
    case "exec": target = .exec(command: try section.text("exec") ?? "")
    default:
      guard try section.flag(kinds[0]) == true else {
        throw SheafError(
          .invalid, subject: section.place.text(kinds[0]), reason: "is false", advice: "leave the sink out")
      }
      target = kinds[0] == "stdout" ? .output : .desktop
    }
    var sink = SinkConfiguration(name: try section.text("name") ?? target.kind, target: target)
    sink.filter = EventFilter(types: try section.texts("types") ?? [], documents: try section.texts("documents") ?? [])
    sink.account = try section.text("account").map { text throws(SheafError) in
      try section.named("account") { () throws(SheafError) in try AccountHandle(text) }
    }
    sink.batch = try section.whole("batch") ?? sink.batch
    sink.timeout = try section.number("timeout") ?? sink.timeout
    sink.schedule.base = try section.number("retry-base") ?? sink.schedule.base
    sink.schedule.cap = try section.number("retry-cap") ?? max(sink.schedule.cap, sink.schedule.base)
    sink.schedule.patience = try section.number("retry-for") ?? sink.schedule.patience
    if let from = try section.text("from") {
      guard ["now", "oldest"].contains(from) else {
        throw SheafError(.invalid, subject: section.place.text("from"), reason: "is neither \"now\" nor \"oldest\"")
      }
      sink.beginsNow = from == "now"
    }
    return sink
  }

  private static func secrets(_ section: Section) throws(SheafError) -> [WebhookSecret] {
    var secrets: [WebhookSecret] = []
    for text in try section.texts("secrets") ?? [] {
      secrets.append(try section.named("secrets") { () throws(SheafError) in try WebhookSecret(text) })
    }
    guard let path = try section.path("secret-file") else { return secrets }
    let text = try Self.text(
      of: path, subject: section.place.text("secret-file"), reason: { "\(path.printable): \($0)" },
      advice: "it has one secret a line")
    for secret in text.split(whereSeparator: \.isWhitespace) {
      secrets.append(try section.named("secret-file") { () throws(SheafError) in try WebhookSecret(String(secret)) })
    }
    return secrets
  }
}

/// A value of the file.
private enum Value: Decodable {
  case flag(Bool), number(Double), text(String), list([Value]), table([String: Value])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([Value].self) {
      self = .list(list)
    } else {
      self = .table(try container.decode([String: Value].self))
    }
  }

  var flag: Bool? { if case .flag(let value) = self { value } else { nil } }
  var number: Double? { if case .number(let value) = self { value } else { nil } }
  var text: String? { if case .text(let value) = self { value } else { nil } }
  var table: [String: Value]? { if case .table(let value) = self { value } else { nil } }

  /// The list's elements, if `read` takes all of them.
  func list<Element>(_ read: (Value) -> Element?) -> [Element]? {
    guard case .list(let values) = self else { return nil }
    let elements = values.compactMap(read)
    return elements.count == values.count ? elements : nil
  }
}

/// A table of the file, with errors that name it.
private struct Section {
  let table: [String: Value]
  let place: Place
  let folder: URL

  /// The place of a table, for messages.
  struct Place {
    let file: String
    let keys: KeyLines
    /// The sink's name, or its number where it has none, and its number; nil for keys above all sinks.
    var sink: (name: String, number: Int)?

    /// `FILE line 7: sink team: batch`.
    func text(_ key: String?) -> String {
      let line = keys.line(of: key, inSink: sink?.number).map { " line \($0)" } ?? ""
      return (["\(file)\(line)"] + (sink.map { ["sink \($0.name)"] } ?? []) + (key.map { [$0.printable] } ?? []))
        .joined(separator: ": ")
    }
  }

  func has(_ key: String) -> Bool { table[key] != nil }

  func text(_ key: String) throws(SheafError) -> String? { try value(key, "a text") { $0.text } }
  func flag(_ key: String) throws(SheafError) -> Bool? { try value(key, "true or false") { $0.flag } }
  func number(_ key: String) throws(SheafError) -> Double? { try value(key, "a number") { $0.number } }
  func whole(_ key: String) throws(SheafError) -> Int? {
    try value(key, "a whole number") { $0.number.flatMap { Int(exactly: $0) } }
  }
  func texts(_ key: String) throws(SheafError) -> [String]? {
    try value(key, "a list of texts") { $0.list { $0.text } }
  }

  /// A path, relative to the file's folder; `~/` is the home.
  func path(_ key: String) throws(SheafError) -> String? {
    guard let text = try text(key) else { return nil }
    let home = ProcessInfo.processInfo.environment["HOME"] ?? ""
    return text.hasPrefix("~/") ? home + text.dropFirst() : URL(fileURLWithPath: text, relativeTo: folder).path
  }

  func sections(_ key: String) throws(SheafError) -> [Section] {
    let tables = try value(key, "a list of tables: [[\(key)]]") { $0.list { $0.table } }
    return (tables ?? []).enumerated().map { index, table in
      var place = place
      place.sink = ((table["name"]?.text ?? "\(index + 1)").printable, index)
      return Section(table: table, place: place, folder: folder)
    }
  }

  /// - Throws: `invalid` that names an unknown key, most likely a typing mistake.
  func refuseOthers(_ known: [String]) throws(SheafError) {
    guard let other = table.keys.sorted().first(where: { !known.contains($0) }) else { return }
    throw SheafError(
      .invalid, subject: place.text(other), reason: "means nothing here",
      advice: "known are " + known.joined(separator: ", "))
  }

  /// The value of a key, read by `read`; an error names the key.
  func named<Result>(_ key: String, _ read: () throws(SheafError) -> Result) throws(SheafError) -> Result {
    do {
      return try read()
    } catch {
      throw SheafError(error.kind, subject: place.text(key), reason: error.reason, advice: error.advice)
    }
  }

  private func value<Result>(_ key: String, _ form: String, _ read: (Value) -> Result?) throws(SheafError) -> Result? {
    guard let value = table[key] else { return nil }
    guard let result = read(value) else {
      throw SheafError(.invalid, subject: place.text(key), reason: "is not \(form)")
    }
    return result
  }
}
