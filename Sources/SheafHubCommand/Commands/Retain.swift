import ArgumentParser
import SheafHub

struct RetainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retain", abstract: "Tell or set for how long the hub keeps versions and deleted items.",
    discussion: """
      Of versions, all are kept for a day, hourly ones for a week, daily ones for a month, and weekly ones for as long \
      as this says. The current version of what is there is kept always. A hub that is being served looks at this \
      every hour.
      """)

  @OptionGroup var hub: HubOption
  @Option(help: ArgumentHelp("For how long versions are kept: days, or `forever`.", valueName: "days"))
  var versions: Days?
  @Option(help: ArgumentHelp("For how long deleted items can come back: days, or `forever`.", valueName: "days"))
  var deleted: Days?
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await hub.withHub { open in
      var rules = try await open.hub.retention.rules()
      if versions != nil || deleted != nil {
        if let versions { rules.versionDays = versions.count }
        if let deleted { rules.deletedDays = deleted.count }
        try await open.hub.retention.set(rules)
      }
      if json { return try JSONOutput.print(Facts(versionDays: rules.versionDays, deletedDays: rules.deletedDays)) }
      print("Versions:      \(Days(count: rules.versionDays))")
      print("Deleted items: \(Days(count: rules.deletedDays))")
    }
  }

  private struct Facts: Encodable {
    let versionDays: Int64?
    let deletedDays: Int64?

    private enum CodingKeys: CodingKey { case versionDays, deletedDays }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(versionDays, forKey: .versionDays)
      try container.encode(deletedDays, forKey: .deletedDays)
    }
  }

  /// A number of days; nil for ever.
  struct Days: ExpressibleByArgument, CustomStringConvertible {
    let count: Int64?

    init(count: Int64?) { self.count = count }

    init?(argument: String) {
      if argument == "forever" {
        count = nil
      } else {
        guard let days = Int64(argument) else { return nil }
        count = days
      }
    }

    var description: String { count.map { $0 == 1 ? "1 day" : "\($0) days" } ?? "forever" }
  }
}
