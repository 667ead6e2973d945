/// The text format of Prometheus, version 0.0.4, read strictly.
struct PrometheusText {
  struct Mistake: Error, CustomStringConvertible {
    let description: String
  }

  struct Sample: Equatable {
    let name: String
    let labels: [String: String]
    let value: Double
  }

  private(set) var types: [String: String] = [:]
  private(set) var samples: [Sample] = []

  /// - Throws: `Mistake` for what the format does not allow.
  init(_ text: String) throws {
    guard text.hasSuffix("\n") else { throw Mistake(description: "the last line does not end") }
    var helped: Set<String> = []
    var ended: Set<String> = []
    var current: String?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false).map(String.init)
      if line.hasPrefix("#") {
        guard words.count == 4, words[0] == "#", ["HELP", "TYPE"].contains(words[1]), Self.isName(words[2]) else {
          throw Mistake(description: "no comment of the format: \(line)")
        }
        if words[1] == "HELP" {
          guard helped.insert(words[2]).inserted else { throw Mistake(description: "two HELP: \(line)") }
        } else {
          guard ["counter", "gauge", "histogram", "summary", "untyped"].contains(words[3]), types[words[2]] == nil,
            !ended.contains(words[2])
          else { throw Mistake(description: "a TYPE that is wrong, second, or late: \(line)") }
          types[words[2]] = words[3]
        }
        if current != words[2] {
          if let current { ended.insert(current) }
          current = words[2]
        }
        continue
      }
      let sample = try Self.sample(line)
      guard sample.name == current, types[sample.name] != nil, helped.contains(sample.name) else {
        throw Mistake(description: "not with its HELP and TYPE: \(line)")
      }
      guard types[sample.name] != "counter" || (sample.name.hasSuffix("_total") && sample.value >= 0) else {
        throw Mistake(description: "a counter that is none: \(line)")
      }
      guard !samples.contains(where: { $0.name == sample.name && $0.labels == sample.labels }) else {
        throw Mistake(description: "twice: \(line)")
      }
      samples.append(sample)
    }
  }

  private static func isName(_ text: String) -> Bool { text.wholeMatch(of: /[a-zA-Z_:][a-zA-Z0-9_:]*/) != nil }

  private static func sample(_ line: Substring) throws -> Sample {
    guard let parts = line.wholeMatch(of: /([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9]+(?:\.[0-9]+)?)/),
      let value = Double(parts.3)
    else { throw Mistake(description: "no sample: \(line)") }
    var labels: [String: String] = [:]
    var rest = parts.2 ?? ""
    while !rest.isEmpty {
      guard let label = rest.prefixMatch(of: /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)/),
        labels[String(label.1)] == nil
      else { throw Mistake(description: "no label: \(rest)") }
      labels[String(label.1)] =
        String(label.2).replacing("\\n", with: "\n").replacing("\\\"", with: "\"").replacing("\\\\", with: "\\")
      rest = rest[label.range.upperBound...]
    }
    return Sample(name: String(parts.1), labels: labels, value: value)
  }
}
