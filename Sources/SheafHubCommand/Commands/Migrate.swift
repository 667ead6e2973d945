import ArgumentParser
import SheafHub
import SheafHubStore
import SheafModel

struct MigrateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Move a hub from SQLite to PostgreSQL, and compare every row and hash.",
    discussion: """
      Nobody may serve the hub meanwhile. An interrupted move begins anew and does no harm. Once all of it is copied and \
      compared, the hub is the one in PostgreSQL: its machines go on with their sessions, and read on where they were. \
      hub.sqlite stays as it was; remove it when you want its room.
      """)

  private struct Facts: Encodable {
    let store: String
    let accounts: Int
    let rows: Int
    let bytes: Int64
  }

  @OptionGroup var hub: HubOption

  @Option(help: ArgumentHelp("Where it goes: a connection string of PostgreSQL.", valueName: "store"))
  var to: String

  @Flag(help: "Print JSON.") var json = false

  func validate() throws {
    if !HubSettings.isPostgres(to) {
      throw ValidationError("--to is a connection string such as postgresql://host/name.")
    }
  }

  func run() async throws {
    let folder = HubFolder(hub.hub)
    _ = try folder.settings()
    try folder.useAlone()
    var settings = try folder.settings()
    guard settings.store == "sqlite" else {
      throw SheafError(
        .notSupported, subject: folder.path.printable, reason: "is on PostgreSQL already",
        advice: "use pg_dump or what your server has")
    }
    let (source, target) = (try folder.database(settings), PostgresDatabase(target: to))
    let result = await Result {
      for database in [source, target] as [any Database] { try await HubOption.addTables(database) }
      // A hub that nobody has opened has no secret yet.
      _ = try await Accounts.secret(in: source)
      return try await StoreMove(from: source, to: target).run()
    }
    await source.close()
    await target.close()
    let moved = try result.get()
    settings.store = to
    try folder.replace(settings)
    let facts = Facts(store: "postgresql", accounts: moved.accounts, rows: moved.rows, bytes: moved.bytes)
    if json { return try JSONOutput.print(facts) }
    print("Moved \(facts.accounts) accounts with \(facts.rows) rows and \(facts.bytes) bytes of contents.")
  }
}
