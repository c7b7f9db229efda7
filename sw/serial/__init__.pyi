from .serial_bus import SerialBus as SerialBus, SerialPort as SerialPort
