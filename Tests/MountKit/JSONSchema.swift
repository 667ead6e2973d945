import Foundation

/// A schema of `docs/schema`, with the part of JSON Schema that those use: `type`, `enum`, `anyOf`, `items`,
/// `properties`, `required` and `$ref` to definitions of a file beside.
public struct JSONSchema {
  private let folder: URL
  private let schema: [String: Any]

  /// Reads `docs/schema/NAME.json`.
  public init(_ name: String) throws {
    folder = URL(fileURLWithPath: Repository.path("docs/schema"))
    schema = try Self.object(at: folder.appendingPathComponent("\(name).json"))
  }

  /// The parts of the JSON that the schema does not describe, with their places; keys that it does not name too.
  public func problems(in json: [UInt8]) throws -> [String] {
    let value = try JSONSerialization.jsonObject(with: Data(json), options: .fragmentsAllowed)
    return try problems(value, schema, "$")
  }

  private static func object(at url: URL) throws -> [String: Any] {
    let json = try JSONSerialization.jsonObject(with: Data(contentsOf: url))
    guard let object = json as? [String: Any] else { throw Command.Failure(description: "\(url.path): is no object") }
    return object
  }

  private func problems(_ value: Any, _ schema: [String: Any], _ place: String) throws -> [String] {
    if let reference = schema["$ref"] as? String { return try problems(value, definition(reference), place) }
    if let choices = schema["anyOf"] as? [[String: Any]] {
      let found = try choices.map { try problems(value, $0, place) }
      return found.contains { $0.isEmpty } ? [] : found.min { $0.count < $1.count } ?? []
    }
    if let allowed = schema["enum"] as? [String] {
      return (value as? String).map(allowed.contains) ?? false ? [] : ["\(place): \(value) is none of \(allowed)"]
    }
    let types = schema["type"] as? [String] ?? (schema["type"] as? String).map { [$0] } ?? []
    let type = Self.type(of: value)
    guard types.contains(type) else { return ["\(place): is \(type), not \(types)"] }
    if let list = value as? [Any], let items = schema["items"] as? [String: Any] {
      return try list.enumerated().flatMap { try problems($1, items, "\(place)[\($0)]") }
    }
    guard let object = value as? [String: Any], let properties = schema["properties"] as? [String: [String: Any]] else {
      return []
    }
    let missing = Set(schema["required"] as? [String] ?? []).subtracting(object.keys).map {
      "\(place).\($0): is missing"
    }
    return try missing
      + object.flatMap { key, value in
        guard let schema = properties[key] else { return ["\(place).\(key): is not described"] }
        return try problems(value, schema, "\(place).\(key)")
      }
  }

  private func definition(_ reference: String) throws -> [String: Any] {
    let parts = reference.components(separatedBy: "#/$defs/")
    let file = try Self.object(at: folder.appendingPathComponent(parts[0]))
    guard parts.count == 2, let definition = (file["$defs"] as? [String: [String: Any]])?[parts[1]] else {
      throw Command.Failure(description: "\(reference): there is no such definition")
    }
    return definition
  }

  private static func type(of value: Any) -> String {
    switch value {
    case is NSNull: "null"
    case let number as NSNumber where isBoolean(number): "boolean"
    case let number as NSNumber: number.doubleValue == number.doubleValue.rounded() ? "integer" : "number"
    case is String: "string"
    case is [Any]: "array"
    default: "object"
    }
  }

  /// Foundation reads true and false as numbers, too.
  private static func isBoolean(_ number: NSNumber) -> Bool { String(cString: number.objCType) == "c" }
}
