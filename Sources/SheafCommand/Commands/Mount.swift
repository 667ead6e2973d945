import ArgumentParser
import Glibc
import Logging
import SheafLibrary
import SheafModel

struct Mount: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Mount a library.",
    discussion: """
      Returns once the mount answers; the library is made where there is none yet. A second mount of the same library \
      joins the process that has it open. What is left of a mount whose process was killed is cleared first.

      Without --as the library's default account is mounted: the one made first, unless `sheaf library set \
      --default-account` said otherwise. A new library gets an account USER@HOST. With --for it is the account of that user's name.

      A library on read-only media is mounted with --read-only: as a copy in TMPDIR, or else in /var/tmp, which goes with \
      the mount.

      Examples:
        sheaf mount                                   your own documents at ~/Sheaf
        sheaf mount /mnt/work --library work.sqlite   another library
        sheaf mount /mnt/bob --as bob@example.com     another account
        sudo sheaf mount /home/eve/Sheaf --for eve    root mounts for a user
        sheaf mount --all                             what was mounted before a crash or a restart
        sheaf mount /mnt/old --read-only --library /media/disc/backup.sqlite
      """)

  @Argument(help: "An empty folder (default: ~/Sheaf).")
  var mountpoint: PathArgument?

  @OptionGroup var library: LibraryOptions

  @Flag(help: "Stay in the foreground, and log to standard error.")
  var foreground = false

  @Flag(help: "Let nobody write.")
  var readOnly = false

  @Flag(help: "Let other users of this machine in, as the files' modes say.")
  var allowOther = false

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("As root: give the mount to this Linux user.", valueName: "user"))
  var forUser: String?

  @Option(
    name: .customShort("o", allowingJoined: true),
    help: ArgumentHelp("Options as of mount(8), separated by commas.", valueName: "options"))
  var options: [String] = []

  @Flag(help: "Make all mounts again that nobody took away by `sheaf unmount`.")
  var all = false

  @OptionGroup var output: OutputOptions

  @Option(help: .hidden)
  var readyDescriptor: CInt?

  @Flag(help: .hidden)
  var removesLibrary = false

  func validate() throws {
    let others =
      mountpoint != nil || library.handle != nil || foreground || readOnly || allowOther || forUser != nil
      || !options.isEmpty
    guard !all || !others else {
      throw ValidationError("--all makes each mount as it was, and takes only --library and --json beside it.")
    }
  }

  func run() async throws {
    if all { return try await mountAll() }
    if foreground {
      MountProcess.limitArenas()
      MountProcess.raiseDescriptorLimit()
    }
    // A process in the background keeps no folder busy.
    if readyDescriptor != nil { chdir("/") }
    let ready = readyDescriptor.map(Readiness.init)
    do {
      let plan = try plan()
      let (location, copy) = try readable(plan)
      do {
        if let made = try await mount(copy == nil ? plan : plan.with(copyAt: location), ready: ready) {
          try announce(made.info, plan, ready: ready, isNew: made.isNew)
        } else {
          copy?.remove()
        }
      } catch {
        copy?.remove()
        throw copy?.naming(plan.location, in: error) ?? error
      }
    } catch {
      ready?.fail(error as? SheafError ?? SheafError(.inputOutput, reason: "\(error)".printable))
      throw error
    }
  }

  /// The library to mount: a copy of one on read-only media, which the process that serves the mount removes.
  private func readable(_ plan: MountPlan) throws -> (LibraryLocation, ReadOnlyCopy?) {
    if removesLibrary { return (plan.location, ReadOnlyCopy(at: plan.location)) }
    guard plan.readOnly, ReadOnlyCopy.isNeeded(for: plan.location) else { return (plan.location, nil) }
    let copy = try ReadOnlyCopy(of: plan.location)
    return (copy.location, copy)
  }

  /// Makes every mount again that the library remembers and that is not up, each as it was; a failure does not keep the
  /// others back.
  private func mountAll() async throws {
    let location = try LibraryChoice.location(named: library.file)
    try Self.refuseOthers(location)
    let status = try await LibraryConnection.with(location) { try await $0.client.status() }
    let missing = status.notMounted
    // The process that mounts opens the library next.
    try await LibraryConnection.closeOwn()
    if missing.isEmpty, !output.json {
      try StandardOutput.line(
        status.mounts.isEmpty
          ? "\(location.path) has no mount to make again: none was made, or `sheaf unmount` took it away."
            .escapingControls
          : "All mounts of \(location.path) are up.".escapingControls)
    }
    var failure: SheafError?
    var made: [MountInfo] = []
    for mount in missing {
      do {
        let command = again(mount, location)
        let plan = try command.plan()
        guard let mounted = try await command.mount(plan, ready: nil) else { continue }
        made.append(mounted.info)
        if !output.json { try announce(mounted.info, plan, ready: nil, isNew: mounted.isNew) }
      } catch let error as SheafError {
        // The last one ends the command.
        if let failure { StandardError.write(ErrorLine.text(failure.description)) }
        failure = error
      }
    }
    if output.json { try JSON.write(made) }
    if let failure { throw failure }
  }

  /// The command that made a mount.
  private func again(_ mount: MountRequest, _ location: LibraryLocation) -> Mount {
    var command = self
    command.all = false
    command.mountpoint = PathArgument(bytes: Array(mount.mountpoint.utf8))
    command.library.file = location.path
    command.library.handle = mount.account.description
    command.readOnly = mount.readOnly
    command.allowOther = mount.allowOther
    command.forUser = mount.forUser
    command.options = mount.options
    return command
  }

  /// Root mounts again only what root alone can have written: others would choose where, for whom and with which
  /// options.
  private static func refuseOthers(_ location: LibraryLocation) throws(SheafError) {
    guard geteuid() == 0 else { return }
    for path in [location.path, SystemPath.split(Array(location.path.utf8)).parent.readable] {
      var status = stat()
      guard lstat(path, &status) == 0, status.st_uid != 0 || status.st_mode & 0o022 != 0 else { continue }
      throw SheafError(
        .notPermitted, subject: path, reason: "others than root can write it, and would choose what root mounts",
        advice: "mount each place by itself: sheaf mount PLACE --library \(location.path)")
    }
  }

  /// Checks the request as far as possible, and fills in its defaults.
  private func plan() throws -> MountPlan {
    let given = try MountOptions(parsing: options)
    let userName = forUser ?? given.forUser
    let owner = try userName.map(Self.user)
    let person = owner ?? LinuxUser.current()
    let allowOther = allowOther || given.allowOther
    try FuseAvailability.check(allowOther: allowOther)
    let place = try Mountpoint(given: mountpoint, user: owner)
    let named = library.file ?? given.library
    let location =
      if named == nil, let dead = try place.deadLibrary() { dead } else { try LibraryChoice.location(named: named) }
    // It would be made to be read.
    if NewLibrary.wouldBeMade(at: location) {
      if readOnly || given.readOnly { try NewLibrary.refuse(at: location) }
      try NewLibrary.refuseWithoutDisk(at: location)
    }
    try place.verify(isOutside: location)
    if mountpoint == nil { try place.create(for: owner) }
    try place.prepare(for: owner, location)
    return MountPlan(
      location: location, mountpoint: place,
      account: try (library.handle ?? given.account).map { try AccountHandle($0) },
      newAccount: try DefaultAccount.handle(
        user: person?.name ?? "user\(getuid())", host: DefaultAccount.hostName()),
      name: person.flatMap { $0.fullName.isEmpty ? nil : $0.fullName }, readOnly: readOnly || given.readOnly,
      allowOther: allowOther, forUser: userName, options: given.forwarded)
  }

  /// A mount that is up and not announced yet.
  private typealias Made = (info: MountInfo, isNew: Bool)

  /// Mounts, and waits for a process that is just closing or opening the library.
  ///
  /// - Returns: nil where this process served the mount, and announced it itself.
  private func mount(_ plan: MountPlan, ready: Readiness?) async throws -> Made? {
    var patience = OwnerPatience(plan.location)
    while true {
      do {
        return try await attempt(plan, ready: ready)
      } catch let passing as Passing {
        try await patience.wait(otherwise: passing.failure)
      }
    }
  }

  /// Joins the process that has the library open, or becomes that process, or starts it.
  private func attempt(_ plan: MountPlan, ready: Readiness?) async throws -> Made? {
    let isNew = NewLibrary.wouldBeMade(at: plan.location)
    if let (info, owner) = try await join(plan) {
      try plan.verify()
      guard foreground, ready == nil else { return (info, isNew: false) }
      try announce(info, plan, ready: nil, isNew: false)
      try await MountProcess.follow(info, of: plan.location, by: owner)
      return nil
    } else if foreground {
      let library: Library
      do {
        library = try Library.open(plan.location)
      } catch let error as SheafError where error.kind == .busy {
        throw Passing(failure: LibraryConnection.silent(plan.location))
      }
      let logger = Logger(label: "sheaf") { StreamLogHandler.standardError(label: $0) }
      try await MountProcess.run(library, plan, logger: logger) {
        try announce($0, plan, ready: ready, isNew: isNew)
      }
      return nil
    } else {
      let info = try Background.start(plan)
      try plan.verify()
      return (info, isNew: isNew)
    }
  }

  /// Mounts through the process that has the library open; returns nil if there is none.
  private func join(_ plan: MountPlan) async throws -> (MountInfo, OwnerProcess)? {
    guard let connection = try await LibraryConnection.join(plan.location) else { return nil }
    do {
      guard connection.info.mounts else {
        throw SheafError(
          .unavailable, subject: plan.location.path,
          reason: "is in use by process \(connection.info.pid), which does not mount",
          advice: "try again when it has ended")
      }
      let info = try await plan.mount(with: connection.client)
      do { try plan.verifyIsSeen(madeBy: connection.info.pid) } catch {
        _ = try? await connection.client.unmount(info.mountpoint, lazy: true)
        throw error
      }
      await connection.close()
      return (info, OwnerProcess(pid: connection.info.pid))
    } catch {
      await connection.close()
      if let error = error as? SheafError, error.kind == .unavailable { throw Passing(failure: error) }
      throw error
    }
  }

  /// Reports that the mount is up, to the process that started this one, otherwise to the person.
  private func announce(_ info: MountInfo, _ plan: MountPlan, ready: Readiness?, isNew: Bool) throws {
    if let ready { return ready.succeed(info) }
    if isNew { try NewLibrary.announce(at: plan.location, output) }
    if output.json { return try JSON.write(info) }
    let line = "Mounted \(plan.location.path) at \(info.mountpoint) for \(info.account)."
    try StandardOutput.line(line.escapingControls)
  }

  /// The user to whom root gives a mount.
  private static func user(_ name: String) throws -> LinuxUser {
    guard getuid() == 0 else {
      throw SheafError(.notPermitted, subject: "--for \(name)".printable, reason: "is for root alone")
    }
    guard let user = LinuxUser.named(name) else {
      throw SheafError(.notFound, subject: name.printable, reason: "there is no such user on this machine")
    }
    return user
  }

  /// A failure that is likely to pass within seconds.
  private struct Passing: Error {
    let failure: SheafError
  }
}
