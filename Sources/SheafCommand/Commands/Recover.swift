import ArgumentParser
import SheafModel

struct Recover: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Bring back what was deleted.",
    discussion: """
      A document or a whole folder comes back with its history and its id, and with the folders above it where they are \
      missing. Where the name is taken by now, it gets a (2). \
      mv out of the folder's .deleted does the same, to whatever place you name.

      Examples:
        sheaf recover ~/Sheaf/Documents/notes.md
        sheaf recover Documents/notes.md --id 5f0c…      an earlier one of that name
        sheaf recover Documents/notes.md Documents/plans
      """)

  @Argument(help: "The paths where it was.", completion: Completions.deletedPaths)
  var paths: [PathArgument]

  @Option(
    help: "Which one, where several were deleted there (default: the latest); see: sheaf deleted.",
    completion: Completions.deletedIDs)
  var id: String?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if id != nil, paths.count > 1 { throw ValidationError("--id says which item of one PATH is meant.") }
  }

  /// What a path means, found before anything comes back: that may change what paths lead to.
  private enum Found {
    /// An item, by its id; nil for what a folder that is there has lost.
    case item(String?)
    case failure(SheafError)
  }

  func run() async throws {
    var found: [Found] = []
    if paths.count > 1 { for path in paths { found.append(try await find(path)) } }
    var recovered: [String] = []
    var failure: SheafError?
    for (index, path) in paths.enumerated() {
      do {
        switch paths.count > 1 ? found[index] : .item(id) {
        case .item(let id): recovered += try await recover(path, id)
        case .failure(let error): throw error
        }
      } catch let error as SheafError {
        // One that cannot come back keeps no other from doing so.
        if let failure { StandardError.write(ErrorLine.text(failure, asJSON: output.json)) }
        failure = error
      }
    }
    if output.json, failure == nil || !recovered.isEmpty { try JSON.write(recovered) }
    if let failure { throw failure }
  }

  private func find(_ path: PathArgument) async throws -> Found {
    do {
      return try await ItemTarget.with(path, library, changing: true) { target in
        if let id = target.address.itemID { return .item(id) }
        return .item(try await target.client.recoverable(target.address))
      }
    } catch let error as SheafError {
      return .failure(error)
    }
  }

  /// Brings back what was deleted at a path, and says so; returns the paths where it is now.
  private func recover(_ path: PathArgument, _ id: String?) async throws -> [String] {
    let (recovered, left) = try await ItemTarget.with(path, library, changing: true) { target in
      let recovered = try await ProgressLine.during("Recovering") { progress in
        do {
          return try await target.client.recover(target.address, id: id, progress: progress)
        } catch let error as SheafError where error.kind == .notFound && paths.count > 1 {
          // It came back with a folder that was named before.
          guard let id, try await isThere(id, target) else { throw error }
          return []
        }
      }
      let left = try await output.json ? nil : target.client.deletedTrees(target.address, limit: 1)
      return (recovered, left.map { $0.trees.count + $0.more } ?? 0)
    }
    if !output.json, !recovered.isEmpty { try tell(recovered, at: path, left: left) }
    return recovered
  }

  private func isThere(_ id: String, _ target: ItemTarget) async throws -> Bool {
    let address = ItemAddress(account: target.address.account, path: Array("id:\(id)".utf8))
    do {
      _ = try await target.client.status(of: address)
      return true
    } catch let error as SheafError where error.kind == .notFound {
      return false
    }
  }

  private func tell(_ paths: [String], at path: PathArgument, left: Int) throws {
    let first = paths.first ?? ""
    let isTree = paths.dropFirst().allSatisfy { $0.hasPrefix(first + "/") }
    let words =
      if isTree {
        first + (paths.count < 2 ? "" : " with \(Format.count(paths.count - 1, "item")) in it")
      } else {
        "\(Format.count(paths.count, "item")) in \(Self.folder(of: paths))"
      }
    try StandardOutput.line("Recovered \(words).".escapingControls)
    if left > 0 {
      let (verb, place) = (left == 1 ? "is" : "are", path.bytes.shellWord)
      let items = Format.count(left, "more item")
      try StandardOutput.line("\(items) \(verb) in the trash there; see: sheaf deleted \(place)")
    }
  }

  /// The folder that all of some paths lie in.
  static func folder(of paths: [String]) -> String {
    let parts = paths.map { $0.split(separator: "/").dropLast() }
    guard let first = parts.first else { return "" }
    var common = first
    for other in parts.dropFirst() {
      common = common.prefix(zip(common, other).prefix { $0 == $1 }.count)
    }
    return common.joined(separator: "/")
  }
}
